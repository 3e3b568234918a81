/**
 * A hypervisor host of a test's own: sshd, libvirtd and virtlogd of Debian in namespaces (network,
 * mounts, processes, name), with a pool, a routed network with DHCP, and an unprivileged user who
 * may use libvirt. Reached over a pair of virtual interfaces and nothing else, and gone with its
 * test.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { promisify } from 'node:util';
import { configureLibvirtd, type Folder, makeFolder, makeHostKey } from './folder.ts';
import { type Connected, connectHost } from './network.ts';

const run = promisify(execFile);
const INIT = join(import.meta.dirname, 'init.sh');
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const LOG_BYTES_SHOWN = 4000;

export interface HypervisorOptions {
  /** Size of the pool's file system; absent: a folder on this machine's disk. */
  readonly poolBytes?: number;
}

/** What init.sh does at a word. */
export type Deed =
  | 'kill-sshd'
  | 'freeze-sshd'
  | 'thaw-sshd'
  | 'start-sshd'
  | 'stop-libvirtd'
  | 'kill-libvirtd'
  | 'freeze-libvirtd'
  | 'thaw-libvirtd'
  | 'start-libvirtd';

export class Hypervisor {
  readonly user = 'prov';
  readonly port = 22;
  readonly socket = '/run/libvirt/libvirt-sock';
  readonly pool = 'images';
  readonly poolPath = '/var/lib/libvirt/images';
  readonly network = 'vmnet';
  /** Address to reach it at. */
  readonly host: string;
  /** Address of this side, where guests find servers of the test. */
  readonly gateway: string;
  /** First three numbers of the addresses of guests, such as `192.168.100`. */
  readonly guestNetwork: string;
  readonly #folder: Folder;
  readonly #connected: Connected;
  readonly #unshare: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  readonly #lines: Interface;
  #initPid = 0;

  private constructor(folder: Folder, connected: Connected, unshare: ChildProcess) {
    this.#folder = folder;
    this.#connected = connected;
    this.#unshare = unshare;
    this.host = connected.addresses.host;
    this.gateway = connected.addresses.gateway;
    this.guestNetwork = connected.addresses.guestNetwork;
    if (unshare.stdout === null) throw new Error('the host has no standard output');
    this.#lines = createInterface({ input: unshare.stdout });
    this.#answers = this.#lines[Symbol.asyncIterator]();
  }

  /** Starts one; about a second. Several can run at once. */
  static async start(options: HypervisorOptions = {}): Promise<Hypervisor> {
    const connected = await connectHost();
    const { addresses } = connected;
    const folder = makeFolder(addresses);
    const unshare = spawn(
      'unshare',
      // Process 1 dies with us by the end of its input; with `unshare`, by this.
      [
        '--net',
        '--mount',
        '--pid',
        '--uts',
        '--fork',
        '--kill-child',
        '--mount-proc',
        'bash',
        INIT,
      ],
      {
        env: {
          PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
          HV: folder.path,
          HV_POOL_BYTES: String(options.poolBytes ?? 0),
          HV_ADDRESS: addresses.host,
        },
        stdio: ['pipe', 'pipe', 'ignore'],
        detached: true,
      },
    );
    const host = new Hypervisor(folder, connected, unshare);
    try {
      await host.#expect('mounts');
      host.#initPid = childOf(unshare.pid ?? 0);
      await connected.begin(unshare.pid ?? 0);
      await host.#tell('network');
      await connected.route();
      await host.#tell('start');
      return host;
    } catch (error) {
      await host.stop();
      throw error;
    }
  }

  /** The user's private key, in OpenSSH's format. */
  get privateKey(): string {
    return readFileSync(join(this.#folder.path, 'client_ed25519'), 'utf8');
  }

  /** Path of that key, for `ssh` itself. */
  get privateKeyFile(): string {
    return join(this.#folder.path, 'client_ed25519');
  }

  /** The host's present key as a line of `known_hosts`. */
  get knownHosts(): string {
    const key = readFileSync(join(this.#folder.path, 'etc/ssh/host_ed25519.pub'), 'utf8');
    return `${this.host} ${key.split(' ').slice(0, 2).join(' ')}\n`;
  }

  /** Does one of the deeds, and resolves when it is done. */
  async do(...deeds: readonly Deed[]): Promise<void> {
    for (const deed of deeds) await this.#tell(deed);
  }

  /** Gives the host another key; connections that stand are cut. */
  async changeHostKey(): Promise<void> {
    await this.do('kill-sshd');
    makeHostKey(this.#folder.path);
    await this.do('start-sshd');
  }

  /** Restarts libvirtd with these lines in its configuration, such as `auth_unix_rw = "sasl"`. */
  async configureLibvirtd(...lines: readonly string[]): Promise<void> {
    await this.do('stop-libvirtd');
    configureLibvirtd(this.#folder.path, ...lines);
    await this.do('start-libvirtd');
  }

  /** Lets another key in, beside those that may already; in OpenSSH's format. */
  allowKey(publicKey: string): void {
    appendFileSync(join(this.#folder.path, 'etc/ssh/authorized_keys'), `${publicKey.trim()}\n`);
  }

  /** Runs a program inside, as root; gives its standard output. */
  async run(program: string, ...args: readonly string[]): Promise<string> {
    const inside = ['--target', String(this.#initPid), '--mount', '--net', '--pid', '--uts'];
    const options = { maxBuffer: OUTPUT_BYTES_MAX };
    return (await run('nsenter', [...inside, '--', program, ...args], options)).stdout;
  }

  virsh(...args: readonly string[]): Promise<string> {
    return this.run('virsh', '-q', '-c', 'qemu:///system', ...args);
  }

  /** Names of the files in the pool's folder. */
  async poolFiles(): Promise<string[]> {
    const names = await this.run('ls', '-A', this.poolPath);
    return names.split('\n').filter((name) => name !== '');
  }

  /** Ids of the processes of a name, as seen from inside. */
  async processes(name: string): Promise<number[]> {
    const script = 'grep -sxl "$1" /proc/[0-9]*/comm; true';
    const found = await this.run('bash', '-c', script, 'bash', name);
    return [...found.matchAll(/\d+/g)].map(Number);
  }

  /** End of a log file, such as `libvirtd.log`, `sshd.log` or `qemu/NAME.log`. */
  log(name: string): string {
    const path = join(this.#folder.path, 'var/log/libvirt', name);
    return readFileSync(path, 'utf8').slice(-LOG_BYTES_SHOWN);
  }

  /** Ends everything in it. Idempotent. */
  async stop(): Promise<void> {
    const { exitCode, signalCode } = this.#unshare;
    if (exitCode === null && signalCode === null) {
      const exited = once(this.#unshare, 'exit');
      this.#unshare.kill('SIGKILL');
      await exited;
    }
    this.#lines.close();
    // Whatever else may hold their other ends: they must not hold up this process.
    this.#unshare.stdin?.destroy();
    this.#unshare.stdout?.destroy();
    await this.#connected.remove();
    rmSync(this.#folder.path, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #tell(word: string): Promise<void> {
    this.#unshare.stdin?.write(`${word}\n`);
    await this.#expect(word);
  }

  async #expect(word: string): Promise<void> {
    const answer = await this.#answers.next();
    if (answer.done !== true && answer.value === `done ${word}`) return;
    const log = readFileSync(join(this.#folder.path, 'init.log'), 'utf8').slice(-LOG_BYTES_SHOWN);
    throw new Error(`the hypervisor host could not do "${word}":\n${log}`);
  }
}

/** The only child of a process, which is process 1 of its namespace. */
function childOf(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  const [child = ''] = children;
  if (children.length !== 1 || child === '') throw new Error(`process ${pid} has no single child`);
  return Number(child);
}
