/**
 * ProviderHealth objects at the API server. Read by GET, not from a cache: one object per provider
 * and minute is not worth a watch. The objects are cluster-scoped and carry who manages them.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { KubeClient } from '#agent/kube/client.ts';
import { isKubeError } from '#agent/kube/errors.ts';
import { createResource, isRecord, type ResourceType } from '#agent/kube/resource.ts';
import type { Leadership } from '#agent/runtime/leadership.ts';
import { API_VERSION, GROUP, INSTALLATION_LABEL, VERSION } from '#shared/crd/names.ts';
import {
  type ProviderHealthStatus,
  providerHealthStatusSchema,
} from '#shared/crd/provider-health.ts';

export const PROVIDER_HEALTHS: ResourceType = {
  group: GROUP,
  version: VERSION,
  plural: 'providerhealths',
};
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
export const MANAGED_BY = 'egress-agent';

export interface HealthWriter {
  /**
   * Makes the status of the object `name` what `report` makes of the present one; creates the
   * object when there is none, and writes nothing when nothing differs. Throws `KubeError`.
   */
  write(
    name: string,
    report: (previous: ProviderHealthStatus | undefined) => ProviderHealthStatus,
    signal: AbortSignal,
  ): Promise<void>;
  /** Deletes our objects whose name is not in `keep`; gives the names of those deleted. */
  prune(keep: ReadonlySet<string>, signal: AbortSignal): Promise<string[]>;
}

export interface HealthWriterDeps {
  readonly client: KubeClient;
  /** Objects that carry another installation's id are not pruned. */
  readonly installation: string;
  /** Asked before each write. */
  readonly leadership: Pick<Leadership, 'assertHeld'>;
}

const objectSchema = z.object({
  metadata: z.object({
    name: z.string(),
    uid: z.string(),
    labels: z.record(z.string(), z.string()).default({}),
  }),
  status: z.unknown().optional(),
});
type StoredObject = z.infer<typeof objectSchema>;

export function createHealthWriter(deps: HealthWriterDeps): HealthWriter {
  const { installation, leadership } = deps;
  const objects = createResource(deps.client, PROVIDER_HEALTHS, (json) => objectSchema.parse(json));

  async function getOrCreate(name: string, signal: AbortSignal): Promise<StoredObject> {
    try {
      return await objects.get({ name }, signal);
    } catch (error) {
      if (!isKubeError(error, 'NotFound')) throw error;
    }
    const labels = { [MANAGED_BY_LABEL]: MANAGED_BY, [INSTALLATION_LABEL]: installation };
    const body = { apiVersion: API_VERSION, kind: 'ProviderHealth', metadata: { name, labels } };
    leadership.assertHeld();
    return objects.create(undefined, body, signal);
  }

  async function remove({ metadata }: StoredObject, signal: AbortSignal): Promise<void> {
    leadership.assertHeld();
    try {
      await objects.delete(
        { name: metadata.name },
        { preconditions: { uid: metadata.uid } },
        signal,
      );
    } catch (error) {
      if (!isKubeError(error, 'NotFound')) throw error;
    }
  }

  return {
    async write(name, report, signal) {
      const { metadata, status } = await getOrCreate(name, signal);
      const parsed = providerHealthStatusSchema.safeParse(status);
      const wanted = report(parsed.success ? parsed.data : undefined);
      if (parsed.success && isDeepStrictEqual(parsed.data, wanted)) return;
      // With the uid, since one that was deleted and made again meanwhile is another object.
      const body = { metadata: { uid: metadata.uid }, status: replacing(status, wanted) };
      const type = 'application/merge-patch+json' as const;
      leadership.assertHeld();
      await objects.patch({ name }, { type, body, subresource: 'status' }, signal);
    },
    async prune(keep, signal) {
      const labelSelector = `${MANAGED_BY_LABEL}=${MANAGED_BY}`;
      const stale = (await objects.list({ labelSelector }, signal)).filter(({ metadata }) => {
        const owner = metadata.labels[INSTALLATION_LABEL] ?? installation;
        return owner === installation && !keep.has(metadata.name);
      });
      for (const object of stale) await remove(object, signal);
      return stale.map(({ metadata }) => metadata.name);
    },
  };
}

/** Merge patch that leaves nothing of `before` but what `after` has as well. */
function replacing(before: unknown, after: ProviderHealthStatus): object {
  const fields = isRecord(before) ? Object.keys(before) : [];
  return { ...Object.fromEntries(fields.map((field) => [field, null])), ...after };
}
