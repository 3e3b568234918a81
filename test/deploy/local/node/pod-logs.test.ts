import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  containerLogFile,
  LOG_FILES_MAX,
  podLogFile,
  pruneLogs,
} from '#deploy/local/node/pod-logs.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'logs-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const pod = (name: string) => ({ namespace: 'default', name });

/** A log that was written to at the second `at`. */
function logOf(name: string, at: number): string {
  const file = containerLogFile(folder, pod(name), 'main');
  writeFileSync(file, name);
  utimesSync(file, at, at);
  return file;
}

it('finds the log of a pod, and not that of one whose name begins alike', () => {
  logOf('a-1', 1);
  const file = logOf('a', 1);
  expect(podLogFile(folder, 'default', 'a')).toBe(file);
  expect(podLogFile(folder, 'default', 'b')).toBeUndefined();
});

it('keeps the newest logs of pods that are gone, and every log of those that are there', () => {
  const living = logOf('living', 1);
  writeFileSync(`${living}.1`, 'older lines');
  utimesSync(`${living}.1`, 1, 1);
  for (let at = 2; at < LOG_FILES_MAX + 5; at++) logOf(`gone-${at}`, at);
  pruneLogs(folder, [pod('living')]);
  const left = readdirSync(folder);
  expect(left).toHaveLength(LOG_FILES_MAX + 2);
  expect(left).toContain('default_living_main.log');
  expect(left).toContain('default_living_main.log.1');
  expect(left).not.toContain('default_gone-4_main.log');
  expect(left).toContain('default_gone-5_main.log');
});
