/**
 * Set-up before `npm start`, `npm test`, `npm run check` and `npm run bench`: npm packages, and on
 * Debian the system packages. Plain JavaScript without dependencies, because it runs before any exist, on
 * whatever Node the machine has (20 or newer). Everything it says goes to stderr, so that the
 * standard output of the command behind it stays machine-readable.
 */
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const BIN = join(ROOT, 'node_modules', '.bin');
const POLICY = '/usr/sbin/policy-rc.d';
const POLICY_TEXT =
  '#!/bin/sh\n# Of the set-up of this project, while it installs packages.\nexit 101\n';

/**
 * What a goal needs beyond npm packages: the program to look for, or the path of a file, and Debian's
 * package of it.
 */
const PROGRAMS = [
  // One row each for what the test's own hypervisor host is made of.
  ...[
    ['sshd', 'openssh-server', 'leads to the libvirtd of the tests'],
    ['ssh-keygen', 'openssh-client', 'makes the keys for it'],
    ['libvirtd', 'libvirt-daemon-system', 'is what the kvm provider talks to'],
    ['virsh', 'libvirt-clients', 'is measured beside the kvm provider'],
    ['qemu-system-x86_64', 'qemu-system-x86', 'runs the virtual machines of the tests'],
    ['qemu-img', 'qemu-utils', 'makes their disks'],
    ['/usr/share/OVMF/OVMF_CODE_4M.fd', 'ovmf', 'boots them'],
    ['dnsmasq', 'dnsmasq-base', 'gives them addresses'],
    ['ip', 'iproute2', 'connects the hypervisor host of the tests'],
    ['objcopy', 'binutils', 'builds the guests of the tests'],
    ['zstd', 'zstd', 'builds the guests of the tests'],
    ['isoinfo', 'genisoimage', 'reads the seeds of machines'],
  ].map(([program, name, why]) => ({ program, package: name, why, goals: ['test', 'bench'] })),
  { program: 'squid', package: 'squid', why: 'runs the managed proxies', goals: ['start', 'test'] },
  {
    program: 'kubectl',
    package: 'kubernetes-client',
    why: 'talks to the local control plane',
    goals: ['start', 'test'],
  },
  {
    program: 'redis-server',
    package: 'redis-server',
    why: 'is measured beside the edge',
    goals: ['bench'],
  },
  {
    program: 'postgres',
    package: 'postgresql',
    why: 'is measured beside the edge',
    goals: ['bench'],
  },
];
const GOALS = ['start', 'test', 'check', 'bench'];

/** Squid lives in /usr/sbin, which an ordinary user's PATH leaves out. */
const EXTRA_PATH = ['/usr/local/sbin', '/usr/sbin', '/sbin'];
/** Holds a folder for each version of PostgreSQL, whose servers are on nobody's PATH. */
const POSTGRES = '/usr/lib/postgresql';

/**
 * Names of packages that an installed tree lacks or has in another version.
 * @param {Record<string, {version?: string, optional?: boolean, peer?: boolean}>} wanted
 *   `packages` of package-lock.json
 * @param {Record<string, {version?: string}>} installed `packages` of node_modules/.package-lock.json
 */
export function stalePackages(wanted, installed) {
  const stale = Object.entries(installed)
    .filter(([path, entry]) => wanted[path]?.version !== entry.version)
    .map(([path]) => path);
  for (const [path, entry] of Object.entries(wanted)) {
    if (path !== '' && !entry.optional && !(path in installed)) stale.push(path);
  }
  return stale;
}

/**
 * Which Debian packages a goal lacks, given what the machine has.
 * @param {string} goal
 * @param {(program: string) => boolean} has
 */
export function missingPrograms(goal, has) {
  return PROGRAMS.filter((entry) => entry.goals.includes(goal) && !has(entry.program));
}

function main(goal) {
  if (!GOALS.includes(goal)) {
    say(`usage: node deploy/setup.mjs ${GOALS.join('|')}`);
    return 2;
  }
  const npmFault = setUpNpm();
  if (npmFault !== undefined) {
    say(npmFault);
    return 1;
  }
  const missing = missingPrograms(goal, onPath);
  if (missing.length > 0) setUpSystem(missing);
  return 0;
}

/** Returns what went wrong, or undefined. */
function setUpNpm() {
  const reason = npmStaleReason();
  if (reason === undefined) return undefined;
  say(`Installing npm packages (${reason}) …`);
  const { command, args } = npmCommand();
  // Not `npm ci`: it refuses the lock, which lacks an optional package (one of vite's, for Windows);
  // `install` follows the lock and leaves such a package out.
  // Errors alone: npm would warn that the machine's Node is too old for what only Node 24 runs.
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  const result = spawnSync(command, [...args, 'install', '--no-save', ...quiet], {
    cwd: ROOT,
    env: { ...process.env, PATH: pathWithoutBin() },
    stdio: ['ignore', 2, 2],
  });
  if (result.error) return `npm could not be started: ${result.error.message}`;
  if (result.status !== 0) return `npm install failed (exit ${result.status ?? result.signal})`;
  return undefined;
}

function npmStaleReason() {
  const installed = readPackages(join(ROOT, 'node_modules', '.package-lock.json'));
  if (installed === undefined) return 'none yet';
  const wanted = readPackages(join(ROOT, 'package-lock.json')) ?? {};
  const stale = stalePackages(wanted, installed);
  if (stale.length > 0) return `${stale.length} missing or stale`;
  return existsSync(join(BIN, 'node')) ? undefined : 'Node 24 is missing';
}

function readPackages(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages;
  } catch {
    return undefined;
  }
}

/**
 * The npm that started us, run by the Node that runs it: the `node` first on an npm script's
 * PATH is inside the very folder that `npm install` changes.
 */
function npmCommand() {
  const { npm_node_execpath: node, npm_execpath: script } = process.env;
  if (node && script) return { command: node, args: [script] };
  return { command: 'npm', args: [] };
}

function pathWithoutBin() {
  return path()
    .filter((folder) => folder !== BIN)
    .join(delimiter);
}

/** Installs what it may; what it may not, the command behind us reports where it is needed. */
function setUpSystem(missing) {
  const packages = missing.map((entry) => entry.package);
  const install = `apt-get install ${packages.join(' ')}`;
  const what = missing.map((entry) => `${entry.program} (${entry.why})`).join(', ');
  if (!existsSync('/usr/bin/apt-get')) {
    say(`Not on this machine: ${what}. Install it with your system's package manager.`);
  } else if (process.getuid?.() !== 0) {
    say(`Not on this machine: ${what}. Install it with: sudo ${install}`);
  } else if (!aptInstall(packages)) {
    say(`Not on this machine: ${what}. Installing failed; try: ${install}`);
  }
}

function aptInstall(packages) {
  say(`Installing Debian packages: ${packages.join(', ')} …`);
  const apt = (...args) =>
    spawnSync('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=60', ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: ['ignore', 2, 2],
    }).status === 0;
  return withoutServices(
    () => apt('update') && apt('install', '-y', '--no-install-recommends', ...packages),
  );
}

/**
 * Runs `work` while Debian's maintainer scripts may start no service: we want the program, and
 * a daemon of the package's own would sit on port 3128 of every address. A policy of the machine's
 * own stays; one that a killed set-up left would keep services from starting for good, and goes.
 * @param {() => boolean} work
 * @param {string} policy where maintainer scripts look
 */
export function withoutServices(work, policy = POLICY) {
  if (existsSync(policy) && readFileSync(policy, 'utf8') !== POLICY_TEXT) return work();
  // A Ctrl-C ends apt-get, which shares our terminal; this process lives on to tidy up.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
  writeFileSync(policy, POLICY_TEXT, { mode: 0o755 });
  try {
    return work();
  } finally {
    rmSync(policy, { force: true });
  }
}

function onPath(program) {
  if (program.startsWith('/')) return existsSync(program);
  const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES) : [];
  const postgres = versions.map((version) => join(POSTGRES, version, 'bin'));
  return [...path(), ...EXTRA_PATH, ...postgres].some((folder) =>
    isExecutable(join(folder, program)),
  );
}

function path() {
  return (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function say(line) {
  process.stderr.write(`${line}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.exitCode = main(process.argv[2] ?? '');
}
