/**
 * The leadership of one election, as its holder has it: kept by renewals that are confirmed in
 * time, ended by the first that is not.
 */
import type { Clock, Timer } from '#shared/clock.ts';
import { type Leadership, LeadershipLostError } from './leadership.ts';

export interface TenureOptions {
  readonly term: number;
  /** Monotonic time right before the request that won was sent. */
  readonly sentMs: number;
  readonly renewDeadlineMs: number;
  readonly clock: Clock;
  readonly onLost: (reason: string) => void;
}

/** Once it is over it never comes back. */
export class Tenure implements Leadership {
  readonly term: number;
  /** Aborts when there is nothing to renew any more. */
  readonly renewals: AbortSignal;
  readonly #work = new AbortController();
  readonly #renewing = new AbortController();
  readonly #options: TenureOptions;
  #heldUntilMs: number;
  #timer: Timer | undefined;
  #ended = false;
  #lost: LeadershipLostError | undefined;

  constructor(options: TenureOptions) {
    this.#options = options;
    this.term = options.term;
    this.renewals = this.#renewing.signal;
    this.#heldUntilMs = options.sentMs + options.renewDeadlineMs;
    this.#arm();
  }

  get signal(): AbortSignal {
    return this.#work.signal;
  }

  get lost(): LeadershipLostError | undefined {
    return this.#lost;
  }

  assertHeld(): void {
    if (this.#lost !== undefined) throw this.#lost;
    if (this.#ended) throw new LeadershipLostError('leadership has ended');
    if (this.#isOver()) throw new LeadershipLostError(this.#overdue());
  }

  /** A renewal that was sent at `sentMs` is confirmed. */
  renewed(sentMs: number): void {
    // Too late counts as lost even if nobody took over: `assertHeld` may have said so already.
    if (this.#isOver()) this.lose(this.#overdue());
    if (this.renewals.aborted) return;
    this.#heldUntilMs = sentMs + this.#options.renewDeadlineMs;
    this.#arm();
  }

  lose(reason: string): void {
    if (this.#ended || this.#lost !== undefined) return;
    this.#lost = new LeadershipLostError(`leadership lost: ${reason}`);
    this.#timer?.cancel();
    this.#renewing.abort(this.#lost);
    this.#options.onLost(reason);
    this.#work.abort(this.#lost);
  }

  /** The work has to end; leadership stays until it has. */
  stop(reason: unknown): void {
    this.#work.abort(reason);
  }

  /** The work has ended. */
  end(): void {
    if (this.#isOver()) this.lose(this.#overdue());
    this.#ended = true;
    this.#timer?.cancel();
    const ended = new LeadershipLostError('leadership has ended');
    this.#renewing.abort(ended);
    // Whatever the work left running must not outlive it.
    this.#work.abort(ended);
  }

  #isOver(): boolean {
    return this.#options.clock.monotonicMs() >= this.#heldUntilMs;
  }

  #overdue(): string {
    return `no renewal was confirmed within ${this.#options.renewDeadlineMs} ms`;
  }

  #arm(): void {
    this.#timer?.cancel();
    const { clock } = this.#options;
    this.#timer = clock.setTimer(() => {
      if (this.#isOver()) this.lose(this.#overdue());
      else this.#arm();
    }, this.#heldUntilMs - clock.monotonicMs());
  }
}
