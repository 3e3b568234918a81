/** What a failed provider call means for the Proxy; branches on the error's class alone. */
import { ProviderError } from '#agent/providers/errors.ts';
import type { ReconcileResult } from '#agent/runtime/workers.ts';
import { findCondition } from '#shared/crd/proxy-status.ts';
import type { StepDeps } from './deps.ts';
import type { Draft } from './draft.ts';
import { cancelDrain } from './drain.ts';
import type { ProvisionedReason } from './status.ts';

/**
 * Stages what `error` says, or throws it again for the queue's backoff:
 * - quota is a wait, not a failure: slow retry, off the backoff curve, never phase Failed;
 * - Permanent latches until the spec is edited (`isLatched`);
 * - anything else is retried with backoff. A running machine does not become unprovisioned by an
 *   API that is away.
 */
export function providerFailure(
  deps: StepDeps,
  draft: Draft,
  error: unknown,
  signal: AbortSignal,
): ReconcileResult {
  // A refused write of ours, a bug, or our own stop: none of it says anything on the machine.
  if (!(error instanceof ProviderError) || signal.aborted) throw error;
  const { message } = error;
  switch (error.class) {
    case 'QuotaExceeded':
      if (!isSettled(draft)) stage(draft, 'QuotaExceeded', message);
      return { requeueAfterMs: deps.intervals.quotaRetryMs };
    case 'Permanent':
      // Nothing goes on from here by itself: the cordon would be for ever.
      cancelDrain({ draft });
      stage(draft, 'PermanentError', message);
      return {};
    default:
      if (!isSettled(draft) && isLasting(deps, draft)) {
        stage(draft, 'ProviderUnavailable', message);
      }
      throw error;
  }
}

/**
 * A permanent failure of this generation: the provider is left alone until somebody edits the
 * spec. An unknown provider is no provider's answer and is decided anew each time.
 */
export function isLatched(draft: Draft): boolean {
  const condition = findCondition(draft.status, 'Provisioned');
  return (
    condition?.reason === 'PermanentError' &&
    condition.observedGeneration === draft.proxy.metadata.generation &&
    condition.message !== unknownProvider(draft.proxy.spec.provider)
  );
}

/** The provider is not configured; adding it to the configuration heals this. */
export function unknownProvider(name: string | undefined): string {
  return `provider "${name ?? ''}" is not in the providers file`;
}

/**
 * Whether the provider has failed for a while. One that fails now and then is not worth a status
 * each time, to and fro. On a Proxy of which nothing is told yet the first failure is.
 */
export function isLasting({ failing, clock, intervals }: StepDeps, draft: Draft): boolean {
  const failingMs = failing.suspect(draft.key, 'failing', clock.monotonicMs());
  const isNew = findCondition(draft.status, 'Provisioned') === undefined;
  return isNew || failingMs >= intervals.requeueNowMs;
}

/** What the condition says already matters more than an API that is away for a while. */
function isSettled(draft: Draft): boolean {
  return draft.isProvisioned() || draft.isReplacing();
}

/**
 * The message of a repeated failure is left as it was first: a text that differs each time (a
 * request id in it) would write the status at each try.
 */
function stage(draft: Draft, reason: ProvisionedReason, message: string): void {
  const before = findCondition(draft.status, 'Provisioned');
  const { generation } = draft.proxy.metadata;
  if (before?.reason === reason && before.observedGeneration === generation) return;
  draft.setProvisioned('False', reason, message);
  draft.tell({ type: 'Warning', reason, action: 'CallProvider', note: message });
}
