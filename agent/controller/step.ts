/** What the steps of a managed Proxy share. */
import {
  type Instance,
  type Mark,
  PartialListError,
  type Provider,
} from '#agent/providers/provider.ts';
import type { ReconcileResult } from '#agent/runtime/workers.ts';
import { SPEC_HASH_ANNOTATION } from '#shared/crd/names.ts';
import type { StepDeps } from './deps.ts';
import type { Draft } from './draft.ts';
import { type PollRange, pollDelayMs } from './intervals.ts';

/** Everything that a step works with. */
export interface Step {
  readonly deps: StepDeps;
  readonly draft: Draft;
  readonly provider: Provider;
  readonly signal: AbortSignal;
}

/** Hash of the spec that the present machine was, or was to be, made from. */
export function intendedHash(draft: Draft): string | undefined {
  return draft.proxy.metadata.annotations[SPEC_HASH_ANNOTATION];
}

/** Writes the intent: from here on a machine of this hash may exist. */
export async function recordIntent({ deps, draft, signal }: Step, hash: string): Promise<void> {
  const { writer } = deps;
  draft.replaceProxy(await writer.setAnnotation(draft.proxy, SPEC_HASH_ANNOTATION, hash, signal));
}

/** Whether a machine is this Proxy's: a name or an id alone does not prove it. */
export function isOwn({ deps, draft }: Pick<Step, 'deps' | 'draft'>, mark: Mark): boolean {
  return mark.uid === draft.proxy.metadata.uid && mark.installation === deps.installation;
}

/** Whose a machine is that `isOwn` refuses, as far as its mark tells; for a person. */
export function describeOwner({ deps }: Pick<Step, 'deps'>, instance: Instance): string {
  const { id, uid, installation, proxy } = instance;
  if (uid === '') return `instance ${id} carries no mark of this Proxy; it is left alone`;
  const named = proxy === undefined ? '' : ` (${proxy.namespace}/${proxy.name})`;
  const elsewhere =
    installation === deps.installation ? '' : ` of installation "${installation || 'unknown'}"`;
  return `instance ${id} is marked as that of the Proxy ${uid}${named}${elsewhere}; it is left alone`;
}

export type DownInstance = Instance & { readonly state: 'Stopped' | 'Terminated' };

/** Whether the provider says that the machine does not run and never will again. */
export function isDown(instance: Instance): instance is DownInstance {
  return instance.state === 'Stopped' || instance.state === 'Terminated';
}

/** A machine of this Proxy that no status tells of, found by its mark. */
export async function findUnrecorded(step: Step): Promise<Instance | undefined> {
  const isSought = (instance: Instance) => isOwn(step, instance);
  try {
    return (await step.provider.listByTag(step.signal)).find(isSought);
  } catch (error) {
    // What is not in the part that could be read may be in the other: unknown, not absent.
    const found = error instanceof PartialListError ? error.instances.find(isSought) : undefined;
    if (found === undefined) throw error;
    return found;
  }
}

/** Looks again soon, and less often the longer the machine has been on its way up or down. */
export function pollAgain({ draft }: Step, range: PollRange): ReconcileResult {
  return { requeueAfterMs: pollDelayMs(range, draft.provisionedSinceMs(), draft.nowMs()) };
}
