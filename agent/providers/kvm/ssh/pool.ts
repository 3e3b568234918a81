/**
 * SSH connections, one for each host: made when first asked for, shared by all, replaced when they
 * are dead or when the credentials have changed.
 */

import { type Backoff, type BackoffPolicy, createBackoff } from '#agent/runtime/backoff.ts';
import { orAborted } from '#agent/runtime/deadline.ts';
import type { Clock, Random } from '#shared/clock.ts';
import { type DialOptions, dial, type SshCredentials, type SshTarget } from './dial.ts';
import { SshError } from './errors.ts';
import type { SshLink } from './link.ts';

export interface SshPoolOptions {
  readonly clock: Clock;
  readonly random: Random;
  /**
   * The present credentials for a host; asked whenever a connection is wanted, so it must be cheap.
   */
  readonly credentials: (target: SshTarget, signal: AbortSignal) => Promise<SshCredentials>;
  readonly dialTimeoutMs?: number;
  readonly keepaliveIntervalMs?: number;
  readonly keepaliveCountMax?: number;
  readonly backoff?: BackoffPolicy;
  /** Makes a connection; the real one unless told otherwise. */
  readonly dial?: typeof dial;
}

const DIAL_TIMEOUT_MS = 10_000;
const KEEPALIVE_INTERVAL_MS = 15_000;
const KEEPALIVE_COUNT_MAX = 3;
const BACKOFF: BackoffPolicy = { baseMs: 1000, maxMs: 30_000 };

/** What the pool knows of a host. */
interface Place {
  readonly backoff: Backoff;
  credentials: SshCredentials | undefined;
  /** The connection, or the attempt at one, that all share. */
  link: Promise<SshLink> | undefined;
  /** Why there is none now, and until when no other attempt is made. */
  failure: { readonly error: SshError; readonly untilMs: number } | undefined;
}

export class SshPool {
  readonly #options: SshPoolOptions;
  readonly #dialOptions: DialOptions;
  readonly #places = new Map<string, Place>();
  readonly #links = new Set<SshLink>();
  readonly #closing = new AbortController();

  constructor(options: SshPoolOptions) {
    this.#options = options;
    this.#dialOptions = {
      clock: options.clock,
      dialTimeoutMs: options.dialTimeoutMs ?? DIAL_TIMEOUT_MS,
      keepaliveIntervalMs: options.keepaliveIntervalMs ?? KEEPALIVE_INTERVAL_MS,
      keepaliveCountMax: options.keepaliveCountMax ?? KEEPALIVE_COUNT_MAX,
    };
  }

  /**
   * The connection to a host. `signal` ends the waiting, never the attempt, which others may share.
   * After a failure, further calls fail with it at once until a while has passed (1 s, doubled up
   * to 30 s) or the credentials change.
   */
  async link(target: SshTarget, signal: AbortSignal): Promise<SshLink> {
    const credentials = await this.#options.credentials(target, signal);
    signal.throwIfAborted();
    if (this.#closing.signal.aborted) throw new SshError('closed', 'the connections were closed');
    const place = this.#placeOf(target);
    if (!isSame(place.credentials, credentials)) {
      void place.link?.then((link) => link.retire()).catch(() => undefined);
      Object.assign(place, { credentials, link: undefined, failure: undefined });
      place.backoff.reset();
    }
    const { failure } = place;
    if (failure !== undefined && this.#options.clock.monotonicMs() < failure.untilMs) {
      throw failure.error;
    }
    place.link ??= this.#dial(target, credentials, place);
    return await orAborted(place.link, signal);
  }

  /** Closes all connections and gives up attempts. Nothing can be had from it afterwards. */
  close(): void {
    this.#closing.abort();
    for (const link of this.#links) link.close();
  }

  #placeOf({ host, port, user }: SshTarget): Place {
    const key = JSON.stringify([user, host, port]);
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    const backoff = createBackoff(this.#options.backoff ?? BACKOFF, this.#options.random);
    const place: Place = { backoff, credentials: undefined, link: undefined, failure: undefined };
    this.#places.set(key, place);
    return place;
  }

  #dial(target: SshTarget, credentials: SshCredentials, place: Place): Promise<SshLink> {
    const { dial: connect = dial } = this.#options;
    const attempt = connect(target, credentials, this.#dialOptions, this.#closing.signal);
    // What a place holds may have been replaced meanwhile, by one with other credentials.
    const current = () => place.link === attempt;
    attempt.then(
      (link) => {
        this.#links.add(link);
        if (current()) {
          place.backoff.reset();
          place.failure = undefined;
        }
        void link.ended.then(() => {
          this.#links.delete(link);
          if (current()) place.link = undefined;
        });
        if (this.#closing.signal.aborted) link.close();
      },
      (error: unknown) => {
        if (!current()) return;
        place.link = undefined;
        if (!(error instanceof SshError)) return;
        const untilMs = this.#options.clock.monotonicMs() + place.backoff.nextMs();
        place.failure = { error, untilMs };
      },
    );
    return attempt;
  }
}

function isSame(a: SshCredentials | undefined, b: SshCredentials): boolean {
  return a?.privateKey === b.privateKey && a.knownHosts === b.knownHosts;
}
