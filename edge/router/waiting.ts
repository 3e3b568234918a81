/**
 * Waiting with several shards: in the queue of each at once, for nobody knows where a proxy comes
 * free first. The first lease is taken; what the other shards do meanwhile is given back.
 */
import type { Attempts } from './attempts.ts';
import type { AcquireOutcome } from './calls.ts';
import { isFinal, verdictOf } from './verdict.ts';

export async function waitEverywhere(
  shards: number,
  attempts: Attempts,
  waitUntilMs: number,
): Promise<AcquireOutcome> {
  const asking = Array.from({ length: shards }, (_, shard) =>
    attempts.acquire(shard, 'further', waitUntilMs),
  );
  try {
    return await firstFinal(asking, (late) => attempts.decline(late));
  } finally {
    attempts.abandon();
  }
}

/** The first outcome that ends the request, else the verdict once all have refused. */
function firstFinal(
  asking: readonly Promise<AcquireOutcome>[],
  decline: (late: AcquireOutcome) => void,
): Promise<AcquireOutcome> {
  return new Promise((resolve, reject) => {
    const refusals: AcquireOutcome[] = [];
    let isSettled = false;
    const settle = (outcome: AcquireOutcome) => {
      if (isSettled) return decline(outcome);
      if (!isFinal(outcome)) refusals.push(outcome);
      isSettled = isFinal(outcome) || refusals.length === asking.length;
      if (isSettled) resolve(isFinal(outcome) ? outcome : verdictOf(refusals));
    };
    const fail = (error: unknown) => {
      isSettled = true;
      reject(error);
    };
    for (const one of asking) one.then(settle, fail);
  });
}
