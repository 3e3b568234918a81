/**
 * Takes down the operations of a run. Times are of the monotonic clock; how the machine's clock,
 * which the edge uses, stands to it is looked at with every operation.
 */
import { systemClock as clock } from '#shared/clock.ts';
import { isUnknown, type Operation, type Outage, type Outcome, type Span } from './history.ts';

/** Rounding to whole milliseconds, on both sides. */
const ROUNDING_MS = 3;

/** What a recorder adds to an operation. */
type Noted = 'id' | 'calledMs' | 'endMs';
/** An operation as who did it knows it. */
export type Note = { [Kind in Operation['kind']]: Omit<OfKind<Kind>, Noted> }[Operation['kind']];
type OfKind<Kind> = Extract<Operation, { readonly kind: Kind }>;

export interface Begun {
  readonly id: number;
  readonly calledMs: number;
}

export class Recorder {
  readonly #operations: Operation[] = [];
  readonly #startedMs = clock.monotonicMs();
  readonly #offsetMs = clock.now() - this.nowMs;
  #leastOffsetMs = this.#offsetMs;
  #mostOffsetMs = this.#offsetMs;
  #lastId = 0;

  /** The run's own time. */
  get nowMs(): number {
    return clock.monotonicMs() - this.#startedMs;
  }

  /** A time of the machine's clock in the run's. */
  toRunMs(epochMs: number): number {
    return epochMs - this.#offsetMs;
  }

  /** To be called right before the request goes out. */
  begin(): Begun {
    return { id: ++this.#lastId, calledMs: this.nowMs };
  }

  /** To be called right after its answer, or the news that there is none. */
  end({ id, calledMs }: Begun, note: Note): void {
    const endMs = this.nowMs;
    const offsetMs = clock.now() - endMs;
    this.#leastOffsetMs = Math.min(this.#leastOffsetMs, offsetMs);
    this.#mostOffsetMs = Math.max(this.#mostOffsetMs, offsetMs);
    this.#operations.push({ ...note, id, calledMs, endMs });
  }

  /** How far times of the machine's clock may be off. */
  get slackMs(): number {
    return ROUNDING_MS + this.#mostOffsetMs - this.#leastOffsetMs;
  }

  /** All operations in the order of calls, once it is known when the edge was killed. */
  settled(outages: readonly Outage[]): Operation[] {
    return this.#operations
      .toSorted((a, b) => a.id - b.id)
      .map((operation) =>
        isUnknown(operation)
          ? { ...operation, ...settle(operation, operation.outcome, outages) }
          : operation,
      );
  }
}

/** Until when an operation without an answer may take effect, and whether it is a fault. */
export function settle(
  { calledMs, endMs }: Span,
  outcome: Outcome,
  outages: readonly Outage[],
): { readonly endMs: number; readonly outcome: Outcome } {
  const cut = outages.findLast(({ fromMs }) => fromMs <= endMs);
  const isCut = cut !== undefined && calledMs <= cut.toMs;
  if (outcome.kind === 'lost' && outcome.why === 'broken') {
    if (isCut && calledMs <= cut.deadMs) return { outcome, endMs: cut.deadMs };
    const next = nextDeathMs(calledMs, outages);
    return { outcome: isCut ? outcome : { ...outcome, why: 'stray' }, endMs: next };
  }
  return { outcome, endMs: nextDeathMs(endMs, outages) };
}

function nextDeathMs(timeMs: number, outages: readonly Outage[]): number {
  return outages.find(({ deadMs }) => deadMs >= timeMs)?.deadMs ?? Number.POSITIVE_INFINITY;
}
