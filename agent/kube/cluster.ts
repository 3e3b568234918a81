/** Everything that the agent has to do with the API server, made together from one access. */
import type { Clock, Random } from '#shared/clock.ts';
import type { Proxy } from '#shared/crd/proxy.ts';
import { type ClusterLocation, openClusterAccess } from './access.ts';
import { createKubeClient, type KubeClient } from './client.ts';
import { createEventRecorder, type EventObserver, type EventRecorder } from './events.ts';
import { createInformer, type Informer, type InformerObserver } from './informer.ts';
import { createProxyClient, PROXIES, type ProxyClient, parseProxy } from './proxies.ts';
import {
  createCloudInitSecrets,
  createSecretStore,
  type Secret,
  type SecretStore,
} from './secrets.ts';
import { WATCH_SILENCE_MS } from './silence.ts';

export interface Cluster {
  readonly client: KubeClient;
  /** The one namespace that is served; absent: every one. */
  readonly namespace?: string;
  readonly proxies: Informer<Proxy>;
  readonly cloudInitSecrets: Informer<Secret>;
  readonly secrets: SecretStore;
  readonly writer: ProxyClient;
  readonly events: EventRecorder;
  /** What keeps the caches and the events going; each runs until its signal aborts. */
  readonly loops: Readonly<Record<string, (signal: AbortSignal) => Promise<void>>>;
  /** Resolves when both caches are complete; rejects with the signal's reason. */
  whenSynced(signal: AbortSignal): Promise<void>;
  /** One line for each cache that is incomplete or out of touch; empty when all is well. */
  problems(): string[];
}

export interface ClusterDeps {
  readonly cluster: ClusterLocation;
  /** Undefined: every namespace. */
  readonly proxyNamespace: string | undefined;
  /** Of the agent, for the audit log of the API server. */
  readonly version: string;
  /** Name of this process in events. */
  readonly instance: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: InformerObserver & EventObserver;
}

/** Throws `ClusterAccessError` when the access cannot work; nothing is connected yet. */
export async function openCluster(deps: ClusterDeps): Promise<Cluster> {
  const { clock, random, observer, instance } = deps;
  const access = await openClusterAccess(deps.cluster, clock);
  const client = createKubeClient({ access, clock, userAgent: `egress-agent/${deps.version}` });
  const scope = deps.proxyNamespace === undefined ? {} : { namespace: deps.proxyNamespace };
  const following = { client, clock, random, observer };
  const proxies = createInformer({
    ...following,
    type: PROXIES,
    options: scope,
    parse: parseProxy,
  });
  const cloudInitSecrets = createCloudInitSecrets({ ...following, ...scope });
  const caches = [proxies, cloudInitSecrets];
  const events = createEventRecorder({ client, clock, random, instance, observer });
  return {
    client,
    ...scope,
    proxies,
    cloudInitSecrets,
    secrets: createSecretStore({ client, clock }),
    writer: createProxyClient({ client, observe: (proxy) => proxies.observe(proxy) }),
    events,
    loops: {
      proxies: (signal) => proxies.run(signal),
      cloudInitSecrets: (signal) => cloudInitSecrets.run(signal),
      events: (signal) => events.run(signal),
    },
    async whenSynced(signal) {
      await Promise.all(caches.map((cache) => cache.whenSynced(signal)));
    },
    problems: () => caches.flatMap((cache) => cacheProblems(cache, clock.monotonicMs())),
  };
}

/** A silent watch is re-established after `WATCH_SILENCE_MS`; twice that without a sign is dead. */
const ACTIVITY_AGE_MS_MAX = 2 * WATCH_SILENCE_MS;

/** What keeps readers from relying on the cache. */
export function cacheProblems(
  cache: Pick<Informer<never>, 'resource' | 'synced' | 'lastActivityMs'>,
  nowMs: number,
): string[] {
  const { resource, synced, lastActivityMs } = cache;
  if (!synced) return [`${resource}: the first list is not complete`];
  const silentMs = nowMs - lastActivityMs;
  if (silentMs <= ACTIVITY_AGE_MS_MAX) return [];
  return [`${resource}: no sign of the API server for ${Math.round(silentMs / 1000)} s`];
}
