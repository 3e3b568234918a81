/** What the controller needs of the rest of the agent, as small as it uses it. */
import type { VerdictReader } from '#agent/health/verdict-reader.ts';
import type { EventRecorder } from '#agent/kube/events.ts';
import type { ProxyClient } from '#agent/kube/proxies.ts';
import type { Provider } from '#agent/providers/provider.ts';
import type { Clock } from '#shared/clock.ts';
import type { Proxy } from '#shared/crd/proxy.ts';
import type { Brake, BrakeObserver } from './brake.ts';
import type { CloudInitSecrets } from './cloud-init.ts';
import type { SecretData } from './credentials.ts';
import type { LeaseReader } from './drain.ts';
import type { Intervals } from './intervals.ts';
import type { Pacing } from './pacing.ts';

/** The informer cache of Proxies; writes through `writer` are in it when they return. */
export interface ProxyCache {
  get(key: string): Proxy | undefined;
}

/** The Secret, read at most a minute ago; undefined when there is none. */
type ReadSecret = (
  namespace: string,
  name: string,
  signal: AbortSignal,
) => Promise<SecretData | undefined>;

/** What the controller tells about itself; implemented by telemetry. */
export type ControllerObserver = BrakeObserver;

export interface ControllerDeps {
  readonly proxies: ProxyCache;
  readonly writer: ProxyClient;
  readonly providers: { get(name: string): Provider | undefined };
  readonly verdicts: VerdictReader;
  /** Secrets with credentials of external proxies. */
  readonly secrets: { get: ReadSecret };
  readonly cloudInitSecrets: CloudInitSecrets;
  /** The edge's word on who still uses a proxy. */
  readonly leases: LeaseReader;
  readonly events: Pick<EventRecorder, 'record'>;
  /** Id of this installation, for the marks of machines. */
  readonly installation: string;
  readonly clock: Clock;
  readonly observer?: ControllerObserver;
}

/** The same with everything decided, as the steps take it. */
export interface StepDeps extends ControllerDeps {
  readonly intervals: Intervals;
  readonly suspects: SuspectList;
  /** Proxies whose provider does not answer, since when. */
  readonly failing: SuspectList;
  readonly pacing: Pacing;
  readonly brake: Brake;
}

/**
 * Instances that the provider called dead once. Kept in memory alone: after a restart a machine is
 * looked at twice again before it is destroyed, which is the safe way round.
 */
export interface SuspectList {
  /** Milliseconds since `instance` was first called dead; 0 at the first time. */
  suspect(key: string, instance: string, nowMs: number): number;
  clear(key: string): void;
}

export function createSuspectList(): SuspectList {
  const first = new Map<string, { instance: string; sinceMs: number }>();
  return {
    suspect(key, instance, nowMs) {
      const known = first.get(key);
      if (known?.instance === instance) return nowMs - known.sinceMs;
      first.set(key, { instance, sinceMs: nowMs });
      return 0;
    },
    clear: (key) => void first.delete(key),
  };
}
