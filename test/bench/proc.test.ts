import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { cpuMsOf, parseStat, residentBytes } from './proc.ts';

/** Fields 4 to 13, and then user and system time. */
const REST = 'S 7 8 9 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 4 0 100 1000 200';

it.each([
  ['a plain name', '42 (workerd) '],
  ['a name with spaces and brackets', '42 (tmux: (server) 1) '],
])('a process status with %s is read', (_case, start) => {
  expect(parseStat(start + REST)).toEqual({ pid: 42, parent: 7, cpuMs: 3_000 });
});

it('refuses what is no process status', () => {
  expect(() => parseStat('42 (x) S')).toThrow('no process status');
});

it('counts the descendants of a process', async () => {
  // The shell waits for its child, which alone uses time until it is told to end.
  const busy = 'let i = 0; while (i < 1e9) i++; console.log(i); process.stdin.resume()';
  const child = spawn('sh', ['-c', '"$0" -e "$1"; true', process.execPath, busy], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  try {
    await once(child.stdout, 'data');
    expect(cpuMsOf([child.pid ?? 0])).toBeGreaterThan(50);
  } finally {
    child.stdin.end();
  }
});

it('knows what is resident', () => {
  expect(residentBytes(process.pid)).toBeGreaterThan(10_000_000);
});
