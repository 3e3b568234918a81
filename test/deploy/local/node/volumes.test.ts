import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Pod, parsePod, unsupported } from '#deploy/local/node/pod.ts';
import { makeVolumes, type ObjectSource } from '#deploy/local/node/volumes.ts';

const NOBODY = 65_534;

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'volumes-'));
  chmodSync(folder, 0o777);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function podWith(spec: { volumes?: object[]; containers?: object[] }): Pod {
  const containers = [{ name: 'main' }];
  const object = {
    metadata: { name: 'p', namespace: 'default', uid: 'u' },
    spec: { containers, ...spec },
  };
  const pod = parsePod(JSON.parse(JSON.stringify(object)));
  if (pod === undefined) throw new Error('not a pod');
  return pod;
}

function configMaps(maps: Readonly<Record<string, Record<string, string>>>): ObjectSource {
  return {
    async configMap(name) {
      const data = maps[name];
      if (data === undefined) return undefined;
      return new Map(Object.entries(data).map(([key, text]) => [key, Buffer.from(text)]));
    },
    secret: async () => undefined,
  };
}

const config = (name: string) => ({ name, configMap: { name } });

/** Everything within `work` happens as a user who has no privileges. */
async function unprivileged(work: () => Promise<unknown>): Promise<void> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(NOBODY);
  try {
    await work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

it('can be made again by an ordinary user after a volume was missing', async () => {
  const pod = podWith({ volumes: [config('early'), config('late')] });
  const at = join(folder, 'v');
  await unprivileged(async () => {
    const early = { early: { a: '1' } };
    await expect(makeVolumes(pod, at, configMaps(early), undefined)).rejects.toThrow(
      'configmap "late" not found',
    );
    const both = { early: { a: '2' }, late: { b: '3' } };
    const made = await makeVolumes(pod, at, configMaps(both), undefined);
    expect(readFileSync(join(made.get('early') ?? '', 'a'), 'utf8')).toBe('2');
    expect(readFileSync(join(made.get('late') ?? '', 'b'), 'utf8')).toBe('3');
  });
});

it.each(['../out', '/etc/out', 'a/../../out', '..'])(
  'writes no file at the key %j',
  async (key) => {
    const pod = podWith({ volumes: [config('odd')] });
    const made = makeVolumes(
      pod,
      join(folder, 'v'),
      configMaps({ odd: { [key]: 'x' } }),
      undefined,
    );
    await expect(made).rejects.toThrow(`path "${key}" leaves the volume`);
  },
);

it.each([{ volumes: [config('../../etc')] }, { containers: [{ name: 'a/../../b' }] }])(
  'a pod whose names are no file names is not run: %j',
  (spec) => {
    expect(unsupported(podWith(spec))).toContain('can be used');
  },
);
