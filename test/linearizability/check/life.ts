/**
 * When a lease certainly lives and when it is certainly over. In between nobody can say: an
 * operation is on its way, or got no answer.
 */
import { answerOf, isUnknown, type Span, succeeded } from '../history.ts';
import type { Digest, Story } from './story.ts';

export interface Life {
  /** Spans in which it lives for certain, in order, with gaps between them. */
  readonly certain: readonly Span[];
  /** From when on it is over for certain, by each of the three ways; Infinity for never. */
  readonly releasedMs: number;
  readonly expiredMs: number;
  readonly goneMs: number;
  /** Its machine may have been removed or replaced from here on. */
  readonly maybeGoneMs: number;
  /** Somebody may have released it from here on. */
  readonly maybeReleasedMs: number;
  /** Its time may be over from here on. */
  readonly maybeExpiredMs: number;
}

/** Sets the time at which a lease expires, somewhere from `lowMs` to `highMs`. */
interface Setter extends Span {
  readonly lowMs: number;
  readonly highMs: number;
  readonly isCertain: boolean;
}

/** Whether the lease lives at every moment of the span. */
export function livesThrough({ certain }: Life, { calledMs, endMs }: Span): boolean {
  return certain.some((live) => live.calledMs <= calledMs && endMs <= live.endMs);
}

/** From when on the lease is over for certain, in whatever way. */
export function overMs({ releasedMs, expiredMs, goneMs }: Life): number {
  return Math.min(releasedMs, expiredMs, goneMs);
}

/** The life of a lease, from what is known of it. */
export function lifeOf(story: Story, digest: Digest): Life {
  const releases = story.operations.filter(({ kind }) => kind === 'release');
  const maybeReleasedMs = least(releases.map(({ calledMs }) => calledMs));
  const releasedMs = least(releases.filter(succeeded).map(({ endMs }) => endMs));
  const otherMachine = digest.inventory
    .writes(story.machine.uid)
    .filter(({ version }) => version?.entry.instance !== story.machine.instance);
  const maybeGoneMs = least(
    otherMachine.filter((one) => one.endMs >= story.grant.calledMs).map((one) => one.calledMs),
  );
  const goneMs = least(
    otherMachine
      .filter((one) => one.isCertain && one.calledMs > story.grant.endMs)
      .map((one) => one.endMs),
  );
  const { spans, expiredMs } = timeOf(settersOf(story), digest.history.slackMs);
  const endMs = Math.min(maybeReleasedMs, maybeGoneMs);
  const certain = spans
    .filter((span) => span.calledMs < endMs)
    .map((span) => ({ calledMs: span.calledMs, endMs: Math.min(span.endMs, endMs) }));
  const maybeExpiredMs = spans.at(-1)?.endMs ?? story.grant.calledMs;
  return {
    certain,
    releasedMs,
    expiredMs,
    goneMs,
    maybeGoneMs,
    maybeReleasedMs,
    maybeExpiredMs,
  };
}

function settersOf({ grant, lease, operations }: Story): Setter[] {
  const { expiresMs } = lease;
  const setters: Setter[] = [{ ...grant, lowMs: expiresMs, highMs: expiresMs, isCertain: true }];
  for (const operation of operations) {
    if (operation.kind !== 'renew') continue;
    const { calledMs, endMs } = operation;
    const renewed = answerOf(operation)?.lease;
    if (renewed !== undefined) {
      const set = { lowMs: renewed.expiresMs, highMs: renewed.expiresMs };
      setters.push({ calledMs, endMs, ...set, isCertain: true });
    } else if (isUnknown(operation)) {
      const ttlMs = operation.ttlSeconds * 1000;
      setters.push({
        calledMs,
        endMs,
        lowMs: calledMs + ttlMs,
        highMs: endMs + ttlMs,
        isCertain: false,
      });
    }
  }
  return setters;
}

/** Walks from one change of what is known to the next. */
function timeOf(
  setters: readonly Setter[],
  slackMs: number,
): { readonly spans: readonly Span[]; readonly expiredMs: number } {
  const grantedMs = setters[0]?.endMs ?? Number.POSITIVE_INFINITY;
  const known = setters.filter(({ isCertain }) => isCertain);
  const changes = [
    ...new Set([...setters.map(({ calledMs }) => calledMs), ...known.map(({ endMs }) => endMs)]),
  ].sort((a, b) => a - b);
  const spans: Span[] = [];
  for (const [index, fromMs] of changes.entries()) {
    const toMs = changes[index + 1] ?? Number.POSITIVE_INFINITY;
    const settled = known.filter((one) => one.endMs <= fromMs);
    const current = setters.filter(
      (one) => one.calledMs <= fromMs && !settled.some((later) => later.calledMs > one.endMs),
    );
    const highMs = Math.max(...current.map((one) => one.highMs)) + slackMs;
    const lowMs = Math.min(...current.map((one) => one.lowMs)) - slackMs;
    if (fromMs >= grantedMs && lowMs > fromMs) add(spans, fromMs, Math.min(toMs, lowMs));
    // What is over stays so, whatever a later request may have been answered.
    if (highMs < toMs) return { spans, expiredMs: Math.max(fromMs, highMs) };
  }
  return { spans, expiredMs: Number.POSITIVE_INFINITY };
}

function add(spans: Span[], calledMs: number, endMs: number): void {
  const last = spans.at(-1);
  if (last !== undefined && last.endMs >= calledMs) {
    spans[spans.length - 1] = { calledMs: last.calledMs, endMs };
  } else {
    spans.push({ calledMs, endMs });
  }
}

function least(times: readonly number[]): number {
  return Math.min(Number.POSITIVE_INFINITY, ...times);
}
