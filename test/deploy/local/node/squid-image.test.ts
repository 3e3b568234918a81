import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { ContainerPlace } from '#deploy/local/node/image.ts';
import { parsePod } from '#deploy/local/node/pod.ts';
import { createSquidImage, isSquidImage } from '#deploy/local/node/squid-image.ts';

const squid = createSquidImage('/usr/sbin/squid');

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'squid-'));
  writeFileSync(join(folder, 'given.conf'), 'http_port 3128\n');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function placeOf(uid: string, args: string[] = [], command: string[] = []): ContainerPlace {
  const pod = parsePod({
    metadata: { name: 'p', namespace: 'default', uid },
    spec: { containers: [{ name: 'squid', image: 'ubuntu/squid', args, command }] },
  });
  const container = pod?.spec.containers[0];
  if (pod === undefined || container === undefined) throw new Error('not a pod');
  const mounts = [{ containerPath: '/etc/squid/squid.conf', hostPath: join(folder, 'given.conf') }];
  return { pod, container, ip: '127.42.0.9', folder, mounts, env: {} };
}

/** The value behind `-n`. */
function serviceOf(place: ContainerPlace): string {
  const { args } = squid.prepare(place);
  return args[args.indexOf('-n') + 1] ?? '';
}

it.each([
  ['ubuntu/squid', true],
  ['ubuntu/squid:6.6-24.04_edge', true],
  ['docker.io/ubuntu/squid:latest', true],
  ['other/squid', false],
  ['ubuntu/squid2', false],
])('%s is its image: %s', (image, is) => {
  expect(isSquidImage(image)).toBe(is);
});

it('runs a pinned copy of the configuration in the place of the given one', () => {
  const { command, args } = squid.prepare(placeOf('uid-1'));
  expect(command).toBe('/usr/sbin/squid');
  expect(args.slice(2)).toEqual(['-f', join(folder, 'squid.conf'), '-NYC']);
});

it('refuses a command that the image does not have', () => {
  expect(() => squid.prepare(placeOf('uid-1', [], ['sh']))).toThrow('has only squid');
});

it('gives each pod a service name of its own, the same at each start', () => {
  const name = serviceOf(placeOf('uid-1'));
  // Squid takes letters and digits.
  expect(name).toMatch(/^[a-z0-9]{1,31}$/);
  expect(serviceOf(placeOf('uid-1'))).toBe(name);
  expect(serviceOf(placeOf('uid-2'))).not.toBe(name);
});

it('removes the shared memory that a killed Squid leaves, and that of no other', () => {
  const [mine, other] = [placeOf(`mine-${process.pid}`), placeOf(`other-${process.pid}`)];
  const files = [mine, other].map((place) => `/dev/shm/${serviceOf(place)}-cf__queues.shm`);
  for (const file of files) writeFileSync(file, '');
  squid.prepare(mine).cleanUp?.();
  expect(files.map((file) => existsSync(file))).toEqual([false, true]);
  squid.prepare(other).cleanUp?.();
});
