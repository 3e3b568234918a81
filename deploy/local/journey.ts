/**
 * The main job, once: the samples are Ready, one is leased as a crawler would, and a page is
 * fetched through it.
 */
import { ProxyAgent, request } from 'undici';
import { createLeaseClient, LeaseApiError, type LeaseClient } from '#shared/client/lease-client.ts';
import type { Clock } from '#shared/clock.ts';
import { echoSchema, type Lease } from '#shared/wire/lease.ts';
import { reasonOf, StartFault } from './fault.ts';
import type { KubeClient } from './kube/client.ts';
import type { Output } from './output.ts';
import { NAMESPACE, SAMPLE_ATTRIBUTES, sampleProgress } from './samples.ts';

const POLL_MS = 100;
const READY_MS_MAX = 90_000;
const LEASE_MS_MAX = 15_000;
const FETCH_TIMEOUT_MS = 10_000;
const FETCH_TRIES_MAX = 4;
const FETCH_RETRY_MS = 500;
const LEASE_TTL_SECONDS = 300;

export interface JourneyDeps {
  readonly clock: Clock;
  readonly kube: KubeClient;
  readonly output: Output;
  readonly signal: AbortSignal;
}

export interface JourneyOptions {
  readonly samples: readonly string[];
  readonly edgeUrl: string;
  readonly discoveryToken: string;
  /** Whether a page fetched through a sample must be seen from the sample's own address. */
  readonly ownEgress: boolean;
}

/** Throws a `StartFault` that says what did not come about. */
export async function runJourney(deps: JourneyDeps, options: JourneyOptions): Promise<void> {
  await whenReady(deps, options.samples);
  const { edgeUrl, discoveryToken } = options;
  const leases = createLeaseClient({ baseUrl: edgeUrl, token: discoveryToken });
  const lease = await acquire(deps, leases, new URL(edgeUrl).hostname);
  const { leaseID, proxy } = lease;
  deps.output.step({
    step: 'leased',
    leaseID,
    proxy: proxy.name,
    url: `${proxy.protocol}://${proxy.host}:${proxy.port}`,
    expiresAt: lease.expiresAt,
  });
  const page = await fetchPage(deps, lease, `${edgeUrl}/v1/echo`);
  if (page.status !== 200) {
    throw new StartFault(`the page fetched through ${proxy.name} has status ${page.status}`);
  }
  if (options.ownEgress && page.egressIP !== proxy.host) {
    const seen = `the page fetched through ${proxy.name} was seen from ${page.egressIP}`;
    throw new StartFault(`${seen}, not from its own address ${proxy.host}`);
  }
  await leases.report(leaseID, { result: 'ok' }, deps.signal);
  deps.output.step({
    step: 'fetched',
    ...page,
    leaseID,
    proxy: proxy.name,
    namespace: proxy.namespace,
  });
}

async function whenReady(deps: JourneyDeps, samples: readonly string[]): Promise<void> {
  const { clock, kube, output, signal } = deps;
  const deadlineMs = clock.monotonicMs() + READY_MS_MAX;
  for (;;) {
    const progress = await sampleProgress(kube, samples, signal);
    if (progress.waitingFor.length === 0) {
      output.step({ step: 'ready', proxies: progress.rows });
      return;
    }
    if (clock.monotonicMs() >= deadlineMs) {
      const [first, ...more] = progress.waitingFor;
      const others = more.length === 0 ? '' : `; ${more.length} more are not Ready either`;
      throw new StartFault(`not Ready after ${READY_MS_MAX / 1000} s: ${first}${others}`);
    }
    await clock.sleep(POLL_MS, signal);
  }
}

/** The edge hears of a Ready proxy a moment after the API server does. */
async function acquire(deps: JourneyDeps, leases: LeaseClient, target: string): Promise<Lease> {
  const { clock, signal } = deps;
  const deadlineMs = clock.monotonicMs() + LEASE_MS_MAX;
  for (;;) {
    try {
      const wish = { selector: { ...SAMPLE_ATTRIBUTES }, ttlSeconds: LEASE_TTL_SECONDS, target };
      const lease = await leases.acquire(wish, signal);
      if (lease.proxy.namespace === NAMESPACE) return lease;
      await leases.release(lease.leaseID, signal);
      throw new StartFault(`a proxy outside of namespace ${NAMESPACE} has the samples' attributes`);
    } catch (error) {
      if (error instanceof StartFault) throw error;
      signal.throwIfAborted();
      const passing = !(error instanceof LeaseApiError) || [409, 503].includes(error.status);
      if (!passing || clock.monotonicMs() >= deadlineMs) {
        throw new StartFault(`no proxy could be leased: ${reasonOf(error)}`, { cause: error });
      }
    }
    await clock.sleep(POLL_MS, signal);
  }
}

/**
 * Tries again for a moment: after a restart a proxy is Ready by its last status, while its process
 * is still starting.
 */
async function fetchPage({ clock, signal }: JourneyDeps, lease: Lease, url: string) {
  for (let triesLeft = FETCH_TRIES_MAX; ; triesLeft--) {
    try {
      return await fetchThrough(lease, url, signal);
    } catch (error) {
      if (signal.aborted || triesLeft <= 1) throw error;
    }
    await clock.sleep(FETCH_RETRY_MS, signal);
  }
}

/** Fetches the echo page as a crawler would, through the URL of the lease. */
export async function fetchThrough(
  lease: Lease,
  url: string,
  signal: AbortSignal,
): Promise<{ status: number; egressIP: string }> {
  const proxy = new ProxyAgent({ uri: lease.proxy.url, proxyTunnel: false });
  try {
    const response = await request(url, {
      dispatcher: proxy,
      signal: AbortSignal.any([signal, AbortSignal.timeout(FETCH_TIMEOUT_MS)]),
    });
    const text = await response.body.text();
    const echo = response.statusCode === 200 ? echoSchema.parse(JSON.parse(text)) : undefined;
    return { status: response.statusCode, egressIP: echo?.ip ?? '' };
  } catch (cause) {
    signal.throwIfAborted();
    throw new StartFault(`fetching through ${lease.proxy.name}: ${reasonOf(cause)}`, { cause });
  } finally {
    await proxy.destroy();
  }
}
