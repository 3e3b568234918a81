/**
 * Sessions with the libvirt of each host, over the pool of SSH connections: one that all calls
 * share, and ones of their own for what would stand in the others' way.
 */
import { orAborted, withDeadline } from '#agent/runtime/deadline.ts';
import type { Clock } from '#shared/clock.ts';
import { type LibvirtClient, type LibvirtOptions, openLibvirt } from './libvirt/client.ts';
import type { SshTarget } from './ssh/dial.ts';
import type { SshLink } from './ssh/link.ts';
import type { SshPool } from './ssh/pool.ts';

export interface LibvirtTarget extends SshTarget {
  /** Path of libvirt's socket on the host. */
  readonly socket: string;
}

export interface SessionOptions {
  readonly clock: Clock;
  readonly pool: SshPool;
  /** Milliseconds in which a session must be open once the host is reached. */
  readonly openTimeoutMs?: number;
  readonly libvirt?: Omit<LibvirtOptions, 'timers'>;
}

const OPEN_TIMEOUT_MS = 15_000;

interface Shared {
  readonly link: SshLink;
  readonly client: Promise<LibvirtClient>;
}

export class LibvirtSessions {
  readonly #options: SessionOptions;
  readonly #shared = new Map<string, Shared>();

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /**
   * The session that all calls to a host share; a new one when the last one is dead or its
   * credentials have changed. Not to be closed by who gets it. `signal` ends the waiting alone.
   */
  async shared(target: LibvirtTarget, signal: AbortSignal): Promise<LibvirtClient> {
    const link = await this.#options.pool.link(target, signal);
    const key = JSON.stringify([target.user, target.host, target.port, target.socket]);
    const known = this.#shared.get(key);
    if (known?.link === link) return await orAborted(known.client, signal);
    // Of a connection that is dead or on its way out: calls in flight are let finish.
    void known?.client.then((client) => client.drain()).catch(() => undefined);
    const shared = { link, client: this.#open(link, target, new AbortController().signal) };
    this.#shared.set(key, shared);
    const forget = () => {
      if (this.#shared.get(key) === shared) this.#shared.delete(key);
    };
    shared.client.then((client) => void client.ended.then(forget), forget);
    return await orAborted(shared.client, signal);
  }

  /** A session of the caller's own, who closes it (`using`): for uploads and checks. */
  async dedicated(target: LibvirtTarget, signal: AbortSignal): Promise<LibvirtClient> {
    const link = await this.#options.pool.link(target, signal);
    return await this.#open(link, target, signal);
  }

  async #open(link: SshLink, target: LibvirtTarget, signal: AbortSignal): Promise<LibvirtClient> {
    const { clock, openTimeoutMs = OPEN_TIMEOUT_MS, libvirt } = this.#options;
    return await withDeadline(clock, openTimeoutMs, signal, async (signal) => {
      const stream = await link.openSocket(target.socket, openTimeoutMs, signal);
      return await openLibvirt(stream, { ...libvirt, timers: clock }, signal);
    });
  }
}
