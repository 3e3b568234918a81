import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import {
  ClusterAccessError,
  createFileCache,
  openClusterAccess,
  serviceAccountAccess,
} from '#agent/kube/access.ts';
import { FakeClock } from '#test/fakes/clock.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'access-'));
});
afterAll(() => rm(folder, { recursive: true }));

const base64 = (text: string) => Buffer.from(text).toString('base64');

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
  readonly current?: string;
}

async function kubeconfig(name: string, parts: Parts): Promise<string> {
  const path = join(folder, name);
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': parts.current ?? 'here',
    contexts: [{ name: 'here', context: parts.context ?? { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: parts.cluster ?? { server: 'https://api.example:6443' } }],
    users: [{ name: 'u', user: parts.user ?? { token: 'secret-token' } }],
  };
  await writeFile(path, stringify(content));
  return path;
}

const open = (...paths: string[]) =>
  openClusterAccess({ kind: 'kubeconfig', paths }, new FakeClock());

describe('kubeconfig', () => {
  test('gives its token and its inline CA', async () => {
    const path = await kubeconfig('token', {
      cluster: {
        server: 'https://api.example:6443',
        'certificate-authority-data': base64('CA'),
        'tls-server-name': 'kubernetes',
      },
    });
    const access = await open(path);
    expect(access.server).toBe('https://api.example:6443');
    expect(await access.credentials()).toEqual({
      headers: { authorization: 'Bearer secret-token' },
      tls: { ca: 'CA', servername: 'kubernetes' },
    });
  });

  test('gives a client certificate from files beside it', async () => {
    await writeFile(join(folder, 'client.crt'), 'CERT');
    await writeFile(join(folder, 'client.key'), 'KEY');
    const path = await kubeconfig('files', {
      user: { 'client-certificate': 'client.crt', 'client-key': 'client.key' },
    });
    const { headers, tls } = await (await open(path)).credentials();
    expect(headers).toEqual({});
    expect(tls).toEqual({ cert: 'CERT', key: 'KEY' });
  });

  test('gives a name and a password as Basic credentials', async () => {
    const path = await kubeconfig('basic', { user: { username: 'u', password: 'p' } });
    const { headers } = await (await open(path)).credentials();
    expect(headers).toEqual({ authorization: `Basic ${base64('u:p')}` });
  });

  test('a credential plugin is run by the library', async () => {
    const credential = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: 'from-plugin' },
    };
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: 'echo',
      args: [JSON.stringify(credential)],
      interactiveMode: 'Never',
    };
    const path = await kubeconfig('exec', {
      cluster: { server: 'https://api.example', 'certificate-authority-data': base64('CA') },
      user: { exec },
    });
    expect(await (await open(path)).credentials()).toEqual({
      headers: { Authorization: 'Bearer from-plugin' },
      tls: { ca: 'CA' },
    });
  });

  test('of two files the first that defines something wins', async () => {
    const first = await kubeconfig('first', { user: { token: 'first-token' } });
    const second = await kubeconfig('second', { user: { token: 'second-token' }, current: 'x' });
    const { headers } = await (await open(first, second)).credentials();
    expect(headers).toEqual({ authorization: 'Bearer first-token' });
  });

  test.each<[string, Parts, string]>([
    ['no-context', { current: '' }, 'no current-context is set'],
    ['other-context', { current: 'there' }, 'contexts: there is no entry named there'],
    [
      'no-user',
      { context: { cluster: 'c', user: 'nobody' } },
      'users: there is no entry named nobody',
    ],
    ['no-url', { cluster: { server: 'api.example' } }, 'server: api.example is not an http(s) URL'],
    ['plain', { cluster: { server: 'http://api.example' } }, 'plain http'],
    ['no-server', { cluster: {} }, 'clusters.0.cluster.server'],
    [
      'no-ca-file',
      { cluster: { server: 'https://a', 'certificate-authority': 'missing' } },
      'missing',
    ],
  ])(
    'a faulty one is refused with its path and what is wrong: %s',
    async (name, parts, message) => {
      const path = await kubeconfig(name, parts);
      const failure = open(path);
      await expect(failure).rejects.toBeInstanceOf(ClusterAccessError);
      await expect(failure).rejects.toThrow(message);
      await expect(failure).rejects.toThrow(folder);
    },
  );

  test('one that is not YAML is refused without quoting it', async () => {
    const path = join(folder, 'broken');
    await writeFile(path, 'users: [{token: "secret-token"');
    const failure = await open(path).catch((error: unknown) => error);
    expect(String(failure)).toContain('is not valid YAML');
    expect(String(failure)).not.toContain('secret-token');
  });

  test('one that cannot be read is named', async () => {
    await expect(open(join(folder, 'nowhere'))).rejects.toThrow(/nowhere: cannot be read/);
  });
});

describe('service account', () => {
  test('token and CA are read again after a minute, or at once after a refusal', async () => {
    const clock = new FakeClock();
    await writeFile(join(folder, 'token'), 'one\n');
    await writeFile(join(folder, 'ca.crt'), 'CA one');
    const location = { host: 'fd00::1', port: '443' };
    const access = await serviceAccountAccess(location, createFileCache(clock), folder);
    expect(access.server).toBe('https://[fd00::1]:443');
    await writeFile(join(folder, 'token'), 'two');
    await writeFile(join(folder, 'ca.crt'), 'CA two');
    await clock.advance(59_000);
    expect((await access.credentials()).headers.authorization).toBe('Bearer one');
    await clock.advance(1_000);
    expect(await access.credentials()).toEqual({
      headers: { authorization: 'Bearer two' },
      tls: { ca: 'CA two' },
    });
    await writeFile(join(folder, 'token'), 'three');
    access.refresh();
    expect((await access.credentials()).headers.authorization).toBe('Bearer three');
  });

  test('a pod without a mounted token is told which file is missing', async () => {
    const root = join(folder, 'unmounted');
    const location = { host: '10.0.0.1', port: '443' };
    const access = serviceAccountAccess(location, createFileCache(new FakeClock()), root);
    await expect(access).rejects.toThrow(join(root, 'token'));
  });
});
