/** Sessions with the hosts, as the provider uses them. */
import { withDeadline } from '#agent/runtime/deadline.ts';
import type { Clock } from '#shared/clock.ts';
import type { KvmHost } from '../config-kvm.ts';
import type { Libvirt } from './libvirt-port.ts';
import type { LibvirtSessions, LibvirtTarget } from './sessions.ts';

export type Use<T> = (libvirt: Libvirt, signal: AbortSignal) => Promise<T>;

/** `signal` ends one use, and never a session that others share. */
export interface Hosts {
  /** On the session that all share, within a minute. */
  call<T>(host: KvmHost, signal: AbortSignal, use: Use<T>): Promise<T>;
  /** On a session of its own, which is closed afterwards: for uploads and checks; no deadline. */
  dedicated<T>(host: KvmHost, signal: AbortSignal, use: Use<T>): Promise<T>;
}

/** A use is a few dozen short calls; to start a domain is the longest of them. */
const CALL_DEADLINE_MS = 60_000;

export function createHosts(sessions: LibvirtSessions, clock: Clock): Hosts {
  return {
    call: (host, signal, use) =>
      withDeadline(clock, CALL_DEADLINE_MS, signal, async (deadline) =>
        use(await sessions.shared(targetOf(host), deadline), deadline),
      ),
    async dedicated(host, signal, use) {
      using session = await sessions.dedicated(targetOf(host), signal);
      return await use(session, signal);
    },
  };
}

function targetOf({ address, port, user, socket }: KvmHost): LibvirtTarget {
  return { host: address, port, user, socket };
}
