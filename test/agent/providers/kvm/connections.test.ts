import { expect, test } from 'vitest';
import { createConnections } from '#agent/providers/kvm/connections.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { closedPort } from '#test/fakes/proxies.ts';
import { configWith } from './block.ts';

const metadata = { namespace: 'crawl', name: 'kvm-ssh', uid: 'u', resourceVersion: '1' };
const signal = new AbortController().signal;

async function dialled(data: Record<string, string> | undefined, port = 22): Promise<unknown> {
  const asked: string[] = [];
  const secrets = {
    async get(namespace: string, name: string) {
      asked.push(`${namespace}/${name}`);
      return data && { metadata, data };
    },
  };
  const connections = createConnections({ secrets, clock: new FakeClock(), random: () => 0 });
  const { kvm } = configWith({ hosts: [{ name: 'hv1', address: '127.0.0.1', port, user: 'a' }] });
  const [host] = kvm.hosts;
  if (host === undefined) throw new Error('no host');
  try {
    return await connections.hosts(kvm).call(host, signal, async () => 'reached');
  } catch (error) {
    return error;
  } finally {
    expect(new Set(asked)).toEqual(new Set(['crawl/kvm-ssh']));
    connections.close();
  }
}

test.each<[string, Record<string, string> | undefined, string]>([
  ['is not there', undefined, 'the Secret crawl/kvm-ssh with the SSH key does not exist'],
  ['has no private key', { known_hosts: 'a' }, 'the Secret crawl/kvm-ssh has no key id_ed25519'],
  ['has an empty one', { id_ed25519: ' \n', known_hosts: 'a' }, 'has no key id_ed25519'],
  ['has no known_hosts', { id_ed25519: 'a' }, 'the Secret crawl/kvm-ssh has no key known_hosts'],
])('a Secret that %s is named, with what it lacks', async (_what, data, message) => {
  expect(await dialled(data)).toMatchObject({
    name: 'CredentialsError',
    message: expect.stringContaining(message),
  });
});

test('a key that is none is no secret to print, and is not printed', async () => {
  const sentinel = 'sentinel-of-a-private-key';
  const error = await dialled({ id_ed25519: sentinel, known_hosts: 'a' }, await closedPort());
  expect(error).toMatchObject({ name: 'SshError', kind: 'credentials' });
  expect(String(error)).not.toContain(sentinel);
});

test('blocks with the same Secret share their connections', () => {
  const secrets = { get: async () => undefined };
  const connections = createConnections({ secrets, clock: new FakeClock(), random: () => 0 });
  const one = connections.hosts(configWith().kvm);
  expect(connections.hosts(configWith().kvm)).toBe(one);
  const sshSecret = { name: 'another', namespace: 'crawl' };
  expect(connections.hosts(configWith({ sshSecret }).kvm)).not.toBe(one);
});
