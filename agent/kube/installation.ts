/**
 * The id of this installation, in a ConfigMap beside the agent. Every machine carries it, so that
 * two installations which share a cloud project or a hypervisor leave each other's machines alone.
 * It is made once and never changes: whoever deletes the ConfigMap disowns every machine.
 */
import { z } from 'zod';
import { createBackoff } from '#agent/runtime/backoff.ts';
import { pause } from '#agent/runtime/deadline.ts';
import type { Clock, Random } from '#shared/clock.ts';
import type { KubeClient } from './client.ts';
import { isKubeError, KubeError } from './errors.ts';
import { CONFIG_MAPS, createResource, type ResourceClient } from './resource.ts';

export const INSTALLATION_CONFIG_MAP = 'egress-agent-installation';

const BACKOFF = { baseMs: 500, maxMs: 15_000 };
/** Valid as a label's value, which is where it goes. */
const ID_PATTERN = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

const configMapSchema = z.object({ data: z.record(z.string(), z.string()).nullish() });
type ConfigMap = z.infer<typeof configMapSchema>;

export interface InstallationDeps {
  readonly client: KubeClient;
  /** Where the agent is at home, and its ConfigMap with it. */
  readonly namespace: string;
  /** Makes an id for the first start of all. */
  readonly newId: () => string;
  readonly clock: Clock;
  readonly random: Random;
  /** The API server could not be asked; it is tried again. Told once. */
  readonly onWait: (error: KubeError) => void;
}

/**
 * Reads the id, or writes it when there is none yet. Waits for an API server that is away; throws
 * when it refuses (a missing namespace, a missing right) or when the ConfigMap holds no id.
 */
export async function readInstallation(
  deps: InstallationDeps,
  signal: AbortSignal,
): Promise<string> {
  const configMaps = createResource(deps.client, CONFIG_MAPS, (object) =>
    configMapSchema.parse(object),
  );
  const backoff = createBackoff(BACKOFF, deps.random);
  for (;;) {
    try {
      return idOf(await getOrCreate(configMaps, deps, signal), deps.namespace);
    } catch (error) {
      if (!(error instanceof KubeError && error.retryable)) throw error;
      if (backoff.failures === 0) deps.onWait(error);
      await pause(deps.clock, error.retryAfterMs ?? backoff.nextMs(), signal);
      signal.throwIfAborted();
    }
  }
}

async function getOrCreate(
  configMaps: ResourceClient<ConfigMap>,
  { namespace, newId }: InstallationDeps,
  signal: AbortSignal,
): Promise<ConfigMap> {
  const ref = { namespace, name: INSTALLATION_CONFIG_MAP };
  try {
    return await configMaps.get(ref, signal);
  } catch (error) {
    if (!isKubeError(error, 'NotFound')) throw error;
  }
  const body = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...ref, labels: { 'app.kubernetes.io/name': 'egress-agent' } },
    immutable: true,
    data: { id: newId() },
  };
  try {
    return await configMaps.create(namespace, body, signal);
  } catch (error) {
    // Another replica was faster; its id is the one.
    if (!isKubeError(error, 'AlreadyExists')) throw error;
    return configMaps.get(ref, signal);
  }
}

function idOf({ data }: ConfigMap, namespace: string): string {
  const id = data?.id ?? '';
  if (ID_PATTERN.test(id)) return id;
  throw new Error(
    `ConfigMap ${namespace}/${INSTALLATION_CONFIG_MAP}: data.id must be a label value; ` +
      'put back the id that the machines carry, or delete the ConfigMap to begin anew',
  );
}
