/**
 * Asks every provider at each interval whether its backend can be reached, and writes the answers
 * to one ProviderHealth object per provider. It says what is; nothing else depends on it, so a
 * dead backend delays neither reconciles nor the readiness of the agent. Runs in the leader alone.
 */
import type { Checker, TargetStatus } from '#agent/providers/provider.ts';
import { pause } from '#agent/runtime/deadline.ts';
import { LeadershipLostError } from '#agent/runtime/leadership.ts';
import type { Clock } from '#shared/clock.ts';
import type { ProviderHealthObserver } from './observer.ts';
import { type Finding, reportStatus, uniqueByName } from './report.ts';
import { openRound, type Round } from './round.ts';
import { createTransitions, type Transitions } from './transitions.ts';
import type { HealthWriter } from './writer.ts';

/** A configured provider; `checker` is absent when its type has no check. */
export interface CheckedProvider {
  readonly name: string;
  readonly type: string;
  readonly checker?: Checker;
}

export interface MonitorDeps {
  /** The providers of the moment. */
  readonly providers: { checked(): readonly CheckedProvider[] };
  readonly writer: HealthWriter;
  readonly clock: Clock;
  readonly observer: ProviderHealthObserver;
}

export interface MonitorOptions {
  /** From the start of one round to the start of the next; 0: no checks. */
  readonly intervalMs: number;
  /** For all checks of a round together. */
  readonly timeoutMs: number;
}

export interface HealthMonitor {
  /** Checks at once and then at each interval, until `signal` aborts. Call once. */
  run(signal: AbortSignal): Promise<void>;
  /** The providers changed: the next round begins now, or right after the one that runs. */
  refresh(): void;
}

/** Time between attempts to clean up when checks are off. */
const OFF_RETRY_MS = 60_000;

/** One per leadership: when it ends, its targets are gone from the metrics. */
export function createHealthMonitor(deps: MonitorDeps, options: MonitorOptions): HealthMonitor {
  return new Monitor(deps, options);
}

class Monitor implements HealthMonitor {
  readonly #deps: MonitorDeps;
  readonly #options: MonitorOptions;
  readonly #transitions: Transitions;
  /** Checks that have not ended; each is left alone until it has. */
  readonly #running = new WeakSet<Checker>();
  /** Failed writes in a row, by provider. */
  readonly #failures = new Map<string, number>();
  /** What objects were kept for at the last successful clean-up. */
  #pruned: string | undefined;
  #pruneFailures = 0;
  #refreshed = false;
  #wake: () => void = () => {};

  constructor(deps: MonitorDeps, options: MonitorOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#transitions = createTransitions(deps.observer);
  }

  refresh(): void {
    this.#refreshed = true;
    this.#wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const { intervalMs } = this.#options;
    try {
      while (!signal.aborted) {
        const startedMs = clock.monotonicMs();
        this.#refreshed = false;
        await this.#round(intervalMs === 0 ? [] : this.#deps.providers.checked(), signal);
        const elapsedMs = clock.monotonicMs() - startedMs;
        if (intervalMs > 0) await this.#pause(Math.max(intervalMs - elapsedMs, 0), signal);
        else await this.#pause(this.#pruned === undefined ? OFF_RETRY_MS : Infinity, signal);
      }
    } finally {
      this.#transitions.forgetAllBut(new Set());
    }
  }

  async #pause(delayMs: number, signal: AbortSignal): Promise<void> {
    if (this.#refreshed) return;
    const waiting = new AbortController();
    this.#wake = () => waiting.abort();
    signal.addEventListener('abort', this.#wake, { once: true });
    if (!signal.aborted) await pause(this.#deps.clock, delayMs, waiting.signal);
    signal.removeEventListener('abort', this.#wake);
  }

  async #round(providers: readonly CheckedProvider[], signal: AbortSignal): Promise<void> {
    const names = new Set(providers.map(({ name }) => name));
    this.#transitions.forgetAllBut(names);
    for (const name of this.#failures.keys()) if (!names.has(name)) this.#failures.delete(name);
    await this.#prune(names, signal);
    if (signal.aborted) return;
    const round = openRound(this.#deps.clock, this.#options.timeoutMs, signal);
    try {
      await Promise.all(providers.map((provider) => this.#examine(provider, round, signal)));
    } finally {
      round.close();
    }
  }

  /** Only when the set of providers is another one than at the last time. */
  async #prune(names: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const { writer, observer } = this.#deps;
    const set = JSON.stringify([...names].sort());
    if (set === this.#pruned) return;
    this.#pruned = undefined;
    try {
      const deleted = await writer.prune(names, signal);
      if (deleted.length > 0) observer.pruned(deleted);
      this.#pruned = set;
      this.#pruneFailures = 0;
    } catch (error) {
      if (!isEnding(error, signal)) observer.pruneFailed(error, ++this.#pruneFailures);
    }
  }

  async #examine(provider: CheckedProvider, round: Round, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const { name, type, checker } = provider;
    const startedMs = clock.monotonicMs();
    const targets = checker && uniqueByName(await this.#check(name, checker, round));
    // A check that was cut short by the stop says nothing of its targets.
    if (signal.aborted) return;
    const durationMs = clock.monotonicMs() - startedMs;
    const checkedAtMs = clock.now();
    this.#transitions.update(name, targets ?? [], { durationMs, checkedAtMs });
    const finding = { type, checkedAtMs, ...(targets === undefined ? {} : { targets }) };
    await this.#write(name, finding, signal);
  }

  /** Never fails and never outlasts the round, whatever the checker does. */
  async #check(name: string, checker: Checker, round: Round): Promise<readonly TargetStatus[]> {
    if (this.#running.has(checker)) {
      return this.#allDown(name, 'Timeout', 'the check of an earlier round has not ended yet');
    }
    this.#running.add(checker);
    const call = (async () => checker.check(round.signal))();
    const checked = call
      .catch((error: unknown) => {
        const message = error instanceof Error ? error.message : String(error);
        return this.#allDown(name, 'CheckFailed', message);
      })
      .finally(() => this.#running.delete(checker));
    const { timeoutMs } = this.#options;
    const late = round.late.then(() =>
      this.#allDown(name, 'Timeout', `the check did not end within ${timeoutMs / 1000} s`),
    );
    return Promise.race([checked, late]);
  }

  /** What is known of a provider whose check says nothing: the targets it had, if any. */
  #allDown(provider: string, reason: string, message: string): TargetStatus[] {
    const targets = this.#transitions.targets(provider);
    const names = targets.length > 0 ? targets : [provider];
    return names.map((name) => ({ name, ready: false, reason, message }));
  }

  async #write(name: string, finding: Finding, signal: AbortSignal): Promise<void> {
    const { writer, observer } = this.#deps;
    try {
      await writer.write(name, (previous) => reportStatus(finding, previous), signal);
      if (this.#failures.delete(name)) observer.writeRecovered(name);
    } catch (error) {
      if (isEnding(error, signal)) return;
      const failures = (this.#failures.get(name) ?? 0) + 1;
      this.#failures.set(name, failures);
      observer.writeFailed(name, error, failures);
    }
  }
}

/** Not a failure: this agent stops, or may no longer write. */
function isEnding(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted || error instanceof LeadershipLostError;
}
