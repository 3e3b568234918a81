import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { type Child, startChild } from '#deploy/local/process/child.ts';
import { identify, isRunning, MARKER, markedProcesses } from '#deploy/local/process/identity.ts';
import { killAll } from '#deploy/local/process/kill.ts';
import { openLogFile } from '#deploy/local/process/log-file.ts';
import { createProcessRecords, endLeftovers } from '#deploy/local/process/records.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { eventually } from '#test/integration/eventually.ts';

const folder = mkdtempSync(join(tmpdir(), 'child-'));
const log = openLogFile(join(folder, 'out.log'));
afterAll(() => {
  log.close();
  rmSync(folder, { recursive: true, force: true });
});

let ids = 0;
function world() {
  const stackId = `test-${process.pid}-${ids++}`;
  const file = join(folder, `${stackId}.json`);
  const deps = { clock, stackId, records: createProcessRecords(file) };
  const start = (script: string): Promise<Child> =>
    startChild(deps, {
      name: 'script',
      command: '/bin/sh',
      args: ['-c', script],
      cwd: folder,
      env: { PATH: '/usr/bin:/bin' },
      output: log.fd,
    });
  return { stackId, file, start };
}

it.each([
  ['exit 0', { exitCode: 0, signal: undefined }],
  ['exit 3', { exitCode: 3, signal: undefined }],
  ['kill -9 $$', { exitCode: 137, signal: 'SIGKILL' }],
  ['kill -15 $$', { exitCode: 143, signal: 'SIGTERM' }],
])('tells how `%s` ended as a shell would', async (script, exit) => {
  const child = await world().start(script);
  await expect(child.exited).resolves.toEqual(exit);
});

it('rejects a program that does not exist', async () => {
  const { stackId, file } = world();
  const deps = { clock, stackId, records: createProcessRecords(file) };
  const spec = {
    name: 'none',
    command: '/no/such',
    args: [],
    cwd: folder,
    env: {},
    output: log.fd,
  };
  await expect(startChild(deps, spec)).rejects.toThrow('ENOENT');
});

it('ends the whole group, also one that ignores SIGTERM', async () => {
  const { stackId, start } = world();
  const child = await start(`trap '' TERM; sleep 300 & sleep 300 & wait; wait`);
  await eventually(() => expect(markedProcesses(stackId)).toHaveLength(3));
  await child.stop(200);
  expect(markedProcesses(stackId)).toEqual([]);
  await expect(child.exited).resolves.toMatchObject({ signal: 'SIGKILL' });
});

it('ends what a killed leader leaves of its group before it tells of the end', async () => {
  const { stackId, start } = world();
  const child = await start('sleep 300 & sleep 300 & wait');
  await eventually(() => expect(markedProcesses(stackId)).toHaveLength(3));
  process.kill(child.pid, 'SIGKILL');
  await child.exited;
  expect(markedProcesses(stackId)).toEqual([]);
});

it('lets a process end in its own time within its grace', async () => {
  const { start } = world();
  const child = await start(
    `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done`,
  );
  await eventually(() => expect(log.tail(1)).toEqual(['ready']));
  await child.stop(10_000);
  await expect(child.exited).resolves.toMatchObject({ exitCode: 7 });
  expect(log.tail(1)).toEqual(['bye']);
});

it('records what runs, and the next start ends it', async () => {
  const { stackId, file, start } = world();
  const child = await start('exec sleep 300');
  const record = JSON.parse(readFileSync(file, 'utf8'));
  expect(record.processes).toEqual([expect.objectContaining({ pid: child.pid })]);
  await expect(endLeftovers(clock, file, stackId)).resolves.toBe(1);
  await expect(child.exited).resolves.toMatchObject({ signal: 'SIGKILL' });
  expect(JSON.parse(readFileSync(file, 'utf8')).processes).toEqual([]);
});

it('ends what carries the marker even when its record was never written', async () => {
  const { stackId, file } = world();
  const env = { PATH: '/usr/bin:/bin', [MARKER]: stackId };
  const stray = spawn('sleep', ['300'], { env, stdio: 'ignore' });
  const ended = new Promise((resolve) => stray.once('exit', (_code, signal) => resolve(signal)));
  await eventually(() => expect(markedProcesses(stackId)).toHaveLength(1));
  rmSync(file);
  await expect(endLeftovers(clock, file, stackId)).resolves.toBe(1);
  await expect(ended).resolves.toBe('SIGKILL');
});

it('spares a process that only has the pid of a recorded one, or another boot', async () => {
  const { stackId, file } = world();
  const bystander = spawn('sleep', ['300'], { stdio: 'ignore' });
  const pid = bystander.pid ?? 0;
  const identity = identify(pid);
  if (identity === undefined) throw new Error('not running');
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const other = { name: 'x', pid, startTicks: String(Number(identity.startTicks) - 1) };
  writeFileSync(file, JSON.stringify({ bootId, processes: [other] }));
  await expect(endLeftovers(clock, file, stackId)).resolves.toBe(0);
  writeFileSync(file, JSON.stringify({ bootId: 'z', processes: [{ name: 'x', ...identity }] }));
  await expect(endLeftovers(clock, file, stackId)).resolves.toBe(0);
  expect(isRunning(identity)).toBe(true);
  bystander.kill('SIGKILL');
});

it('bounds a log and keeps the part before', () => {
  const bounded = openLogFile(join(folder, 'bounded.log'));
  writeFileSync(bounded.fd, `${'x'.repeat(2000)}\nlast\n`);
  bounded.rotateIfLarge(10_000);
  expect(existsSync(join(folder, 'bounded.log.1'))).toBe(false);
  bounded.rotateIfLarge(1000);
  writeFileSync(bounded.fd, 'next\n');
  expect(readFileSync(bounded.path, 'utf8')).toBe('next\n');
  expect(readFileSync(`${bounded.path}.1`, 'utf8')).toMatch(/last\n$/);
  bounded.close();
});

it('looks again after killing: what was started in between is ended too', async () => {
  const { start } = world();
  const [first, second] = await Promise.all([start('exec sleep 300'), start('exec sleep 300')]);
  const identities = [identify(first.pid), identify(second.pid)].flatMap((one) => one ?? []);
  // The second one shows up when the first is gone, as a late child of it would.
  const find = () => identities.filter(isRunning).slice(0, 1);
  await expect(killAll(clock, find)).resolves.toBe(2);
  await expect(first.exited).resolves.toMatchObject({ signal: 'SIGKILL' });
  await expect(second.exited).resolves.toMatchObject({ signal: 'SIGKILL' });
});
