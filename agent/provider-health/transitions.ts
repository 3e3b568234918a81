/** Remembers the targets of each provider and tells what changed from round to round. */
import type { TargetStatus } from '#agent/providers/provider.ts';
import type { CheckTimes, ProviderHealthObserver } from './observer.ts';

export interface Transitions {
  /** Takes in what a check found; none at all when the provider has no check. */
  update(provider: string, targets: readonly TargetStatus[], times: CheckTimes): void;
  /** Names of the targets of the last check. */
  targets(provider: string): string[];
  /** Providers that are not named have left the configuration. */
  forgetAllBut(providers: ReadonlySet<string>): void;
}

type TargetObserver = Pick<
  ProviderHealthObserver,
  'checked' | 'targetDown' | 'targetUp' | 'targetGone'
>;

export function createTransitions(observer: TargetObserver): Transitions {
  const known = new Map<string, ReadonlyMap<string, TargetStatus>>();

  function tellChange(provider: string, target: TargetStatus, was: TargetStatus | undefined): void {
    if (target.ready) {
      if (was?.ready === false) observer.targetUp(provider, target);
    } else if (was?.ready !== false || was.reason !== target.reason) {
      observer.targetDown(provider, target);
    }
  }

  function update(provider: string, targets: readonly TargetStatus[], times: CheckTimes): void {
    const before = known.get(provider);
    const after = new Map(targets.map((target) => [target.name, target]));
    known.set(provider, after);
    for (const target of after.values()) {
      observer.checked(provider, target, times);
      tellChange(provider, target, before?.get(target.name));
    }
    for (const name of before?.keys() ?? []) {
      if (!after.has(name)) observer.targetGone(provider, name);
    }
  }

  return {
    update,
    targets: (provider) => [...(known.get(provider)?.keys() ?? [])],
    forgetAllBut(providers) {
      for (const [provider, targets] of known) {
        if (providers.has(provider)) continue;
        known.delete(provider);
        for (const name of targets.keys()) observer.targetGone(provider, name);
      }
    },
  };
}
