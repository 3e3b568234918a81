/** Check of one host: can machines be made on it, and what is it. */
import { DeadlineError, orAborted } from '#agent/runtime/deadline.ts';
import type { KvmHost } from '../config-kvm.ts';
import { failedCheck } from '../failed-check.ts';
import type { TargetStatus } from '../provider.ts';
import { gib } from './capacity.ts';
import { CredentialsError } from './classify.ts';
import type { Hosts } from './hosts.ts';
import {
  isLibvirtError,
  LibvirtConnectionError,
  LibvirtRefusedError,
  POOL_STATE,
} from './libvirt/client.ts';
import type { Libvirt } from './libvirt-port.ts';
import { SshError, type SshErrorKind } from './ssh/errors.ts';
import { child, children, parseXml } from './xml.ts';

const SSH_REASONS: Readonly<Record<SshErrorKind, string>> = {
  hostKey: 'HostKeyRejected',
  auth: 'Unauthorized',
  credentials: 'CredentialsInvalid',
  unreachable: 'Unreachable',
  socket: 'SocketUnavailable',
  lost: 'Unreachable',
  closed: 'Unreachable',
};

const POOL_WORDS = Object.fromEntries(
  Object.entries(POOL_STATE).map(([word, state]) => [state, word]),
);

/** Something on the host is not as machines need it. */
class Unfit extends Error {
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Checks hosts, each on a session of its own, which no other call shares. */
export class HostChecker {
  readonly #hosts: Hosts;
  /** The probe of each host that has not ended: there is never a second one beside it. */
  readonly #probes = new Map<string, Promise<unknown>>();

  constructor(hosts: Hosts) {
    this.#hosts = hosts;
  }

  /** Never throws; prompt once `signal` aborts. */
  async check(host: KvmHost, signal: AbortSignal): Promise<TargetStatus> {
    const { name } = host;
    try {
      // One that was given up on may not have ended; what became of it is told already.
      await orAborted(
        Promise.resolve(this.#probes.get(name)).catch(() => undefined),
        signal,
      );
      const details = await orAborted(this.#probe(host, signal), signal);
      const message = `pool ${host.pool} and network ${host.network} can be used`;
      return { name, ready: true, reason: 'Reachable', message, details };
    } catch (error) {
      return { name, ...verdictOn(error, signal) };
    }
  }

  #probe(host: KvmHost, signal: AbortSignal): Promise<Record<string, string>> {
    const probe = this.#hosts.dedicated(host, signal, (libvirt) => look(libvirt, host, signal));
    const ended = probe.finally(() => {
      if (this.#probes.get(host.name) === ended) this.#probes.delete(host.name);
    });
    this.#probes.set(host.name, ended);
    return ended;
  }
}

async function look(
  libvirt: Libvirt,
  host: KvmHost,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const hostname = await libvirt.hostname(signal);
  const pool = await libvirt.poolInfo(await libvirt.poolByName(host.pool, signal), signal);
  const poolState = POOL_WORDS[pool.state] ?? `state ${pool.state}`;
  if (pool.state !== POOL_STATE.running && pool.state !== POOL_STATE.degraded) {
    throw new Unfit('PoolNotRunning', `pool ${host.pool} is ${poolState}`);
  }
  const network = await libvirt.networkByName(host.network, signal);
  if (!(await libvirt.isNetworkActive(network, signal))) {
    throw new Unfit('NetworkNotActive', `network ${host.network} is not active`);
  }
  if (host.virtType === 'kvm' && !offersKvm(await libvirt.capabilities(signal))) {
    const remedy = 'virtType: qemu would emulate it, slowly';
    throw new Unfit('KVMUnavailable', `the host has no KVM for x86_64; ${remedy}`);
  }
  const memory = await libvirt.hostMemory(signal);
  return {
    version: libvirt.version,
    hostname,
    poolState,
    poolCapacity: gib(pool.capacity),
    poolFree: gib(pool.available),
    memory: gib(memory.total),
    memoryAvailable: gib(memory.available),
  };
}

/** What the host can run, by its own account. */
export function offersKvm(capabilities: string): boolean {
  const root = parseXml(capabilities);
  const archs = root === undefined ? [] : children(root, 'guest').map((one) => child(one, 'arch'));
  return archs.some(
    (arch) =>
      arch?.getAttribute('name') === 'x86_64' &&
      children(arch, 'domain').some((domain) => domain.getAttribute('type') === 'kvm'),
  );
}

/** Reason and message of a failure; the reasons are those that are mended in different ways. */
export function verdictOn(error: unknown, signal: AbortSignal) {
  return failedCheck(error, signal, reasonOf);
}

function reasonOf(error: unknown): string {
  if (error instanceof Unfit) return error.reason;
  if (error instanceof CredentialsError) return 'CredentialsMissing';
  if (error instanceof SshError) return SSH_REASONS[error.kind];
  if (error instanceof LibvirtRefusedError) {
    return error.kind === 'auth' ? 'LibvirtAuthRequired' : 'LibvirtTooOld';
  }
  if (error instanceof LibvirtConnectionError) {
    return error.kind === 'protocol' ? 'APIError' : 'Unreachable';
  }
  if (error instanceof DeadlineError) return 'Timeout';
  if (isLibvirtError(error, 'noStoragePool')) return 'PoolNotFound';
  if (isLibvirtError(error, 'noNetwork')) return 'NetworkNotFound';
  if (isLibvirtError(error, 'accessDenied', 'authFailed')) return 'Forbidden';
  return 'APIError';
}
