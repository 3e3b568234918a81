/** One connection per host: shared, replaced, backed off from; on a dial that the test answers. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { SshCredentials } from '#agent/providers/kvm/ssh/dial.ts';
import { SshError } from '#agent/providers/kvm/ssh/errors.ts';
import { SshLink } from '#agent/providers/kvm/ssh/link.ts';
import { SshPool } from '#agent/providers/kvm/ssh/pool.ts';
import { FakeClock, settle } from '#test/fakes/clock.ts';
import { FakeClient } from './fake-client.ts';

interface Dialled {
  readonly host: string;
  readonly credentials: SshCredentials;
  readonly signal: AbortSignal;
  succeed(): FakeClient;
  fail(error: SshError): void;
}

const never = new AbortController().signal;
const HV1 = { host: 'hv1', port: 22, user: 'me' };
const HV2 = { host: 'hv2', port: 22, user: 'me' };
let clock: FakeClock;
let dialled: Dialled[];
let credentials: SshCredentials;
let pool: SshPool;

beforeEach(() => {
  clock = new FakeClock();
  dialled = [];
  credentials = { privateKey: 'key-1', knownHosts: 'hosts-1' };
  pool = new SshPool({
    clock,
    random: () => 1,
    credentials: async () => credentials,
    dial: ({ host }, credentials, _options, signal) =>
      new Promise((resolve, reject) => {
        dialled.push({
          host,
          credentials,
          signal,
          fail: reject,
          succeed() {
            const client = new FakeClient();
            resolve(client.asLink(host, clock));
            return client;
          },
        });
      }),
  });
});

async function connected(target = HV1) {
  const asked = pool.link(target, never);
  await settle();
  const client = dialled.at(-1)?.succeed() as FakeClient;
  return { link: await asked, client };
}

describe('a connection', () => {
  it('is made when it is asked for, once for all who ask', async () => {
    expect(dialled).toHaveLength(0);
    const asked = [pool.link(HV1, never), pool.link(HV1, never), pool.link(HV1, never)];
    await settle();
    expect(dialled).toHaveLength(1);
    dialled[0]?.succeed();
    const links = await Promise.all(asked);
    expect(new Set(links).size).toBe(1);
    await expect(pool.link(HV1, never)).resolves.toBe(links[0]);
    expect(dialled).toHaveLength(1);
  });

  it('is one for each host, port and user', async () => {
    void pool.link(HV1, never);
    void pool.link(HV2, never);
    void pool.link({ ...HV1, port: 2222 }, never);
    void pool.link({ ...HV1, user: 'you' }, never);
    await settle();
    expect(dialled).toHaveLength(4);
  });

  it('is made anew at once when it was lost', async () => {
    const { link, client } = await connected();
    client.destroy();
    await settle();
    const next = await connected();
    expect(next.link).not.toBe(link);
    expect(dialled).toHaveLength(2);
  });

  it('whose waiting was aborted is still made for the others', async () => {
    const controller = new AbortController();
    const [aborted, other] = [pool.link(HV1, controller.signal), pool.link(HV1, never)];
    await settle();
    controller.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    expect(dialled[0]?.signal.aborted).toBe(false);
    dialled[0]?.succeed();
    await expect(other).resolves.toBeInstanceOf(SshLink);
  });
});

describe('a failed attempt', () => {
  const refused = () => new SshError('unreachable', 'hv1 cannot be reached');

  async function failing(): Promise<void> {
    const asked = pool.link(HV1, never);
    await settle();
    dialled.at(-1)?.fail(refused());
    await expect(asked).rejects.toMatchObject({ kind: 'unreachable' });
  }

  it('is not repeated for 1 s, then 2 s, up to 30 s; meanwhile its error stands', async () => {
    for (const waitMs of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
      const before = dialled.length;
      await failing();
      await clock.advance(waitMs - 1);
      await expect(pool.link(HV1, never)).rejects.toMatchObject({ kind: 'unreachable' });
      expect(dialled).toHaveLength(before + 1);
      await clock.advance(1);
    }
  });

  it('holds up no other host', async () => {
    await failing();
    await expect(connected(HV2)).resolves.toBeDefined();
  });

  it('is forgotten after a success', async () => {
    await failing();
    await clock.advance(1000);
    const { client } = await connected();
    client.destroy();
    await settle();
    await failing();
    await clock.advance(1000);
    await expect(connected()).resolves.toBeDefined();
  });

  it('is repeated at once with other credentials', async () => {
    await failing();
    credentials = { privateKey: 'key-2', knownHosts: 'hosts-1' };
    await connected();
    expect(dialled.map((one) => one.credentials.privateKey)).toEqual(['key-1', 'key-2']);
  });
});

describe('credentials that changed', () => {
  it.each([
    ['key', { privateKey: 'key-2', knownHosts: 'hosts-1' }],
    ['known_hosts', { privateKey: 'key-1', knownHosts: 'hosts-2' }],
  ])('(%s) bring a new connection; the old one ends with its last stream', async (_, changed) => {
    const { link, client } = await connected();
    const opening = link.openSocket('/run/sock', 1000, never);
    const stream = client.open();
    await opening;
    credentials = changed;
    const next = await connected();
    expect(next.link).not.toBe(link);
    expect(client.closed).toBe(false);
    stream.destroy();
    await new Promise((resolve) => setImmediate(resolve));
    expect(client.closed).toBe(true);
    await expect(pool.link(HV1, never)).resolves.toBe(next.link);
  });

  it('while an attempt runs: the first one serves who waits for it, and is let go', async () => {
    const first = pool.link(HV1, never);
    await settle();
    credentials = { privateKey: 'key-2', knownHosts: 'hosts-1' };
    const second = pool.link(HV1, never);
    await settle();
    const old = dialled[0]?.succeed();
    const present = dialled[1]?.succeed();
    expect(await first).not.toBe(await second);
    await settle();
    expect([old?.closed, present?.closed]).toEqual([true, false]);
  });

  it('that cannot be had fail the call, and nothing else', async () => {
    const broken = new SshPool({
      clock,
      random: () => 1,
      credentials: () => Promise.reject(new Error('no such Secret')),
    });
    await expect(broken.link(HV1, never)).rejects.toThrow('no such Secret');
  });
});

describe('closed', () => {
  it('it ends its connections and gives no more', async () => {
    const { client } = await connected();
    pool.close();
    expect(client.closed).toBe(true);
    await expect(pool.link(HV1, never)).rejects.toMatchObject({ kind: 'closed' });
  });

  it('it gives up attempts; one that succeeds all the same is ended', async () => {
    const asked = pool.link(HV1, never);
    asked.catch(() => undefined);
    await settle();
    pool.close();
    expect(dialled[0]?.signal.aborted).toBe(true);
    const client = dialled[0]?.succeed();
    await settle();
    expect(client?.closed).toBe(true);
  });
});
