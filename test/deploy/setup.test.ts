import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { missingPrograms, stalePackages } from '../../deploy/setup.mjs';

const ROOT = resolve(import.meta.dirname, '../..');

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'setup-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Runs `withoutServices` in a process of its own, whose signals it takes; prints the policy. */
function policyWhileWorking(policy: string): string {
  const setup = pathToFileURL(join(ROOT, 'deploy/setup.mjs')).href;
  const script = `
    import { readFileSync } from 'node:fs';
    import { withoutServices } from ${JSON.stringify(setup)};
    const policy = ${JSON.stringify(policy)};
    withoutServices(() => process.stdout.write(readFileSync(policy, 'utf8')), policy);`;
  const args = ['--input-type=module', '--eval', script];
  return spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout;
}

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

/** What the hypervisor host of the tests is made of, and its guests. */
const HYPERVISOR = [
  'openssh-server',
  'openssh-client',
  'libvirt-daemon-system',
  'libvirt-clients',
  'qemu-system-x86',
  'qemu-utils',
  'ovmf',
  'dnsmasq-base',
  'iproute2',
  'binutils',
  'zstd',
  'genisoimage',
];

it.each([
  ['start', ['squid', 'kubernetes-client']],
  ['test', [...HYPERVISOR, 'squid', 'kubernetes-client']],
  ['check', []],
  ['bench', [...HYPERVISOR, 'redis-server', 'postgresql']],
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

it('forbids services while packages are installed, and allows them again', () => {
  const policy = join(folder, 'policy-rc.d');
  expect(policyWhileWorking(policy)).toContain('exit 101');
  expect(existsSync(policy)).toBe(false);
});

it('takes away what a killed set-up forbade', () => {
  const policy = join(folder, 'policy-rc.d');
  writeFileSync(policy, policyWhileWorking(policy));
  policyWhileWorking(policy);
  expect(existsSync(policy)).toBe(false);
});

it("leaves a policy of the machine's own as it is", () => {
  const policy = join(folder, 'policy-rc.d');
  writeFileSync(policy, '#!/bin/sh\nexit 0\n');
  expect(policyWhileWorking(policy)).toBe('#!/bin/sh\nexit 0\n');
  expect(readFileSync(policy, 'utf8')).toBe('#!/bin/sh\nexit 0\n');
});
