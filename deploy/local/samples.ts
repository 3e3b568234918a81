/** The sample proxies of a start: made once from one manifest, then left to their user. */
import { join } from 'node:path';
import { z } from 'zod';
import { API_VERSION } from '#shared/crd/names.ts';
import { isJsonObject, type JsonObject } from './control-plane/json.ts';
import { StartFault } from './fault.ts';
import type { KubeClient } from './kube/client.ts';
import { createIfAbsent, readManifest } from './manifests.ts';
import type { ProxyRow } from './output.ts';

export const NAMESPACE = 'default';
/** What the samples have in common; the journey leases one of them. */
export const SAMPLE_ATTRIBUTES = { pool: 'samples' } as const;

const COLLECTION = `/apis/${API_VERSION}/namespaces/${NAMESPACE}/proxies`;

const statusSchema = z.object({
  phase: z.string().default('Pending'),
  ip: z.string().default(''),
  egressIP: z.string().default(''),
  latencyMillis: z.number().optional(),
  conditions: z
    .array(
      z.object({
        type: z.string(),
        status: z.string(),
        reason: z.string(),
        message: z.string().default(''),
      }),
    )
    .default([]),
});

const proxySchema = z.object({
  metadata: z.object({ name: z.string() }),
  status: statusSchema.prefault({}),
});
type SampleProxy = z.infer<typeof proxySchema>;

/** Names of the samples. */
export function sampleNames(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `sample-${index + 1}`);
}

/** The sample proxies as objects, after `deploy/samples/managed-proxy.yaml`. */
export function sampleProxies(root: string, count: number): JsonObject[] {
  const file = join(root, 'deploy', 'samples', 'managed-proxy.yaml');
  const [template] = readManifest(file);
  const metadata = template?.['metadata'];
  if (template === undefined || !isJsonObject(metadata)) {
    throw new StartFault(`${file}: has no Proxy object`);
  }
  return sampleNames(count).map((name) => ({ ...template, metadata: { ...metadata, name } }));
}

/** Creates those that do not exist; what a user has changed since stays as it is. */
export async function applySamples(
  client: KubeClient,
  proxies: readonly JsonObject[],
  signal: AbortSignal,
): Promise<void> {
  for (const proxy of proxies) await createIfAbsent(client, COLLECTION, proxy, signal);
}

export interface SampleProgress {
  readonly rows: readonly ProxyRow[];
  /** One line for each that is not Ready, saying why as far as the status tells. */
  readonly waitingFor: readonly string[];
}

/** How far the samples are. */
export async function sampleProgress(
  client: KubeClient,
  names: readonly string[],
  signal: AbortSignal,
): Promise<SampleProgress> {
  const list = await client.request({ path: COLLECTION, signal });
  const proxies = z.object({ items: z.array(proxySchema) }).parse(list).items;
  const samples = names.flatMap((name) => {
    const found = proxies.find((proxy) => proxy.metadata.name === name);
    return found === undefined ? [] : [found];
  });
  const missing = names.filter((name) => !samples.some((one) => one.metadata.name === name));
  return {
    rows: samples.map(row),
    waitingFor: [
      ...missing.map((name) => `${name} does not exist`),
      ...samples.filter((proxy) => !isReady(proxy)).map(describe),
    ],
  };
}

function isReady({ status }: SampleProxy): boolean {
  return status.conditions.some((one) => one.type === 'Ready' && one.status === 'True');
}

function row({ metadata, status }: SampleProxy): ProxyRow {
  const { phase, ip, egressIP, latencyMillis } = status;
  const proxy = { proxy: metadata.name, phase, ip, egressIP };
  return latencyMillis === undefined ? proxy : { ...proxy, latencyMillis };
}

function describe({ metadata, status }: SampleProxy): string {
  const failing = status.conditions.find((one) => one.status !== 'True');
  const why =
    failing === undefined ? '' : ` (${failing.type}: ${failing.reason} ${failing.message})`;
  return `${metadata.name} is ${status.phase}${why}`;
}
