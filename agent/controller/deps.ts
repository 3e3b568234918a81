/** What the controller needs of the rest of the agent, as small as it uses it. */
import type { VerdictReader } from '#agent/health/verdict-reader.ts';
import type { Provider } from '#agent/providers/provider.ts';
import type { Clock } from '#shared/clock.ts';
import type { Proxy, ProxyStatus } from '#shared/crd/proxy.ts';
import type { CloudInitSecrets } from './cloud-init.ts';
import type { SecretData } from './credentials.ts';
import type { Intervals } from './intervals.ts';

/** The informer cache of Proxies; writes through `ProxyWriter` are in it when they return. */
export interface ProxyCache {
  get(key: string): Proxy | undefined;
}

/**
 * Writes on Proxy objects; each answers with the object as it then stands, and refuses (Conflict)
 * when the object is no longer the one that the decision was made on.
 */
export interface ProxyWriter {
  addFinalizer(proxy: Proxy, signal: AbortSignal): Promise<Proxy>;
  /** Lets the API server remove an object that is being deleted. */
  removeFinalizer(proxy: Proxy, signal: AbortSignal): Promise<unknown>;
  setAnnotation(
    proxy: Proxy,
    key: string,
    value: string | undefined,
    signal: AbortSignal,
  ): Promise<Proxy>;
  /** Makes the status what `status` says: fields that it lacks are removed. */
  patchStatus(proxy: Proxy, status: ProxyStatus, signal: AbortSignal): Promise<Proxy>;
}

/** A Kubernetes Event on a Proxy. */
export interface ProxyEvent {
  readonly regarding: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
  };
  readonly type: 'Normal' | 'Warning';
  /** CamelCase, why. */
  readonly reason: string;
  /** CamelCase, what was done. */
  readonly action: string;
  /** For a person. */
  readonly note: string;
}

export interface EventSink {
  /** Never throws and never waits: an event that cannot be written is not worth a reconcile. */
  record(event: ProxyEvent): void;
}

/** Secrets with credentials of external proxies. */
export interface SecretReader {
  /** The Secret, read at most a minute ago; undefined when there is none. */
  get(namespace: string, name: string, signal: AbortSignal): Promise<SecretData | undefined>;
}

export interface ControllerDeps {
  readonly proxies: ProxyCache;
  readonly writer: ProxyWriter;
  readonly providers: { get(name: string): Provider | undefined };
  readonly verdicts: VerdictReader;
  readonly secrets: SecretReader;
  readonly cloudInitSecrets: CloudInitSecrets;
  readonly events: EventSink;
  readonly clock: Clock;
}

/** The same with everything decided, as the steps take it. */
export interface StepDeps extends ControllerDeps {
  readonly intervals: Intervals;
  readonly suspects: SuspectList;
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
