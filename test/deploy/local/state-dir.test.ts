import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openStateDir, openTokens, writeSecretFile } from '#deploy/local/state-dir.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'state-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it('is used by one start at a time, and names the flag and the other pid', async () => {
  const first = await openStateDir(join(folder, 'new/state'));
  const refused = openStateDir(join(folder, 'new/state'));
  await expect(refused).rejects.toThrow(
    new RegExp(`--state-dir: .*is in use by pid ${process.pid}`),
  );
  await first.unlock();
  const second = await openStateDir(join(folder, 'new/state'));
  expect(second.stackId).toBe(first.stackId);
  await second.unlock();
});

it('knows itself by another name of the same folder', async () => {
  const first = await openStateDir(folder);
  await expect(openStateDir(join(folder, '..', folder.split('/').at(-1) ?? ''))).rejects.toThrow(
    'is in use',
  );
  await first.unlock();
});

it('refuses what is not a folder', async () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  await expect(openStateDir(file)).rejects.toThrow(/--state-dir: .*file is not a folder.*EEXIST/);
});

it('keeps its tokens, and keeps them from others', async () => {
  const state = await openStateDir(folder);
  const tokens = openTokens(state);
  expect(tokens.discovery).not.toBe(tokens.agent);
  expect(openTokens(state)).toEqual(tokens);
  expect(statSync(join(folder, 'tokens.json')).mode & 0o777).toBe(0o600);
  await state.unlock();
});

it('says what to do about tokens that it cannot read, without showing them', async () => {
  writeFileSync(join(folder, 'tokens.json'), '{"discovery":"my-secret-token-1"}');
  const state = await openStateDir(folder);
  expect(() => openTokens(state)).toThrow(/tokens\.json: needs the keys discovery and agent/);
  expect(() => openTokens(state)).not.toThrow(/my-secret/);
  await state.unlock();
});

it('takes the readers of a file away when it becomes a secret', () => {
  const file = join(folder, 'edge.env');
  writeFileSync(file, 'old', { mode: 0o644 });
  writeSecretFile(file, 'new');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, 'utf8')).toBe('new');
});

it('refuses a place where no folder can be made, at once', async () => {
  await expect(openStateDir('/proc/no-such/state')).rejects.toThrow(/--state-dir: .*\(ENOENT\)/);
});

it('closes its folders to others, also those that an earlier start left open', async () => {
  mkdirSync(join(folder, 'edge'), { mode: 0o755 });
  const state = await openStateDir(folder);
  for (const path of [state.edgeStorage, state.controlPlane, state.logs, state.podLogs]) {
    expect(statSync(path).mode & 0o777).toBe(0o700);
  }
  await state.unlock();
});

it('makes no new tokens in place of those that it cannot read', async () => {
  const state = await openStateDir(folder);
  mkdirSync(join(folder, 'tokens.json'));
  expect(() => openTokens(state)).toThrow(/--state-dir: .*tokens\.json cannot be read \(EISDIR\)/);
  await state.unlock();
});

it.each(['', '../../somewhere', 'short'])('replaces a mark that reads %j', async (text) => {
  writeFileSync(join(folder, 'stack-id'), text);
  const state = await openStateDir(folder);
  expect(state.stackId).toMatch(/^[0-9a-f]{16}$/);
  expect(readFileSync(join(folder, 'stack-id'), 'utf8')).toBe(state.stackId);
  await state.unlock();
});
