import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { missingPrograms, stalePackages } from '../../deploy/setup.mjs';

const ROOT = resolve(import.meta.dirname, '../..');

it.each([
  ['nothing is installed', {}, ['node_modules/a', 'node_modules/b']],
  ['one is missing', { 'node_modules/a': { version: '1.0.0' } }, ['node_modules/b']],
  [
    'one is of another version',
    { 'node_modules/a': { version: '1.0.0' }, 'node_modules/b': { version: '1.9.9' } },
    ['node_modules/b'],
  ],
  [
    'one is no longer wanted',
    {
      'node_modules/a': { version: '1.0.0' },
      'node_modules/b': { version: '2.0.0' },
      'node_modules/c': { version: '1.0.0' },
    },
    ['node_modules/c'],
  ],
  [
    'all that this machine can use is there',
    { 'node_modules/a': { version: '1.0.0' }, 'node_modules/b': { version: '2.0.0' } },
    [],
  ],
])('stale packages are found when %s', (_case, installed, stale) => {
  const wanted = {
    '': { version: '0.1.0' },
    'node_modules/a': { version: '1.0.0' },
    'node_modules/b': { version: '2.0.0' },
    'node_modules/for-another-system': { version: '1.0.0', optional: true },
  };
  expect(stalePackages(wanted, installed)).toEqual(stale);
});

it.each([
  ['start', ['squid', 'kubernetes-client']],
  ['test', ['squid', 'kubernetes-client']],
  ['check', []],
])('a bare machine lacks for %s the Debian packages %j', (goal, packages) => {
  expect(missingPrograms(goal, () => false).map((entry) => entry.package)).toEqual(packages);
  expect(missingPrograms(goal, () => true)).toEqual([]);
});

it('says nothing on standard output and has nothing to do on a machine that is set up', () => {
  const ran = spawnSync(process.execPath, [join(ROOT, 'deploy/setup.mjs'), 'check'], {
    encoding: 'utf8',
  });
  expect(ran).toMatchObject({ status: 0, stdout: '', stderr: '' });
});

it('names the goals that it knows', () => {
  const ran = spawnSync(process.execPath, [join(ROOT, 'deploy/setup.mjs'), 'deploy'], {
    encoding: 'utf8',
  });
  expect(ran).toMatchObject({ status: 2, stdout: '' });
  expect(ran.stderr).toContain('start|test|check');
});
