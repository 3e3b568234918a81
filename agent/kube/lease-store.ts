/**
 * The lease of the leader election as a `Lease` of coordination.k8s.io, the way client-go keeps
 * it, so that `kubectl get lease` shows who leads; the term is an annotation.
 */
import { z } from 'zod';
import type { LeaseRecord, LeaseStore, StoredLease } from '#agent/runtime/lease.ts';
import { GROUP } from '#shared/crd/names.ts';
import type { KubeClient } from './client.ts';
import { isKubeError } from './errors.ts';
import { microTime } from './micro-time.ts';
import { createResource, type ResourceType } from './resource.ts';

export const LEASE_NAME = 'egress-agent';
export const TERM_ANNOTATION = `${GROUP}/term`;

export const LEASES: ResourceType = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
};

const leaseSchema = z.object({
  metadata: z.object({
    resourceVersion: z.string().min(1),
    annotations: z.record(z.string(), z.string()).nullish(),
  }),
  // Nobody leads by a Lease that somebody made by hand and left empty.
  spec: z
    .object({
      holderIdentity: z.string().nullish(),
      leaseDurationSeconds: z.number().nullish(),
      acquireTime: z.string().nullish(),
      renewTime: z.string().nullish(),
      leaseTransitions: z.number().nullish(),
    })
    .nullish(),
});

export interface LeaseStoreDeps {
  readonly client: KubeClient;
  /** Where the agent is at home. */
  readonly namespace: string;
}

/** Throws `KubeError`, or the signal's reason when that aborts. */
export function createLeaseStore({ client, namespace }: LeaseStoreDeps): LeaseStore {
  const leases = createResource(client, LEASES, parseLease);
  const ref = { namespace, name: LEASE_NAME };
  return {
    async read(signal) {
      try {
        return await leases.get(ref, signal);
      } catch (error) {
        if (isKubeError(error, 'NotFound')) return undefined;
        throw error;
      }
    },
    async create(record, signal) {
      const { metadata, spec } = leaseBody(record);
      const labels = { 'app.kubernetes.io/name': 'egress-agent' };
      const body = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { ...ref, ...metadata, labels },
        spec,
      };
      try {
        return await leases.create(namespace, body, signal);
      } catch (error) {
        if (isKubeError(error, 'AlreadyExists')) return 'conflict';
        throw error;
      }
    },
    async replace(version, record, signal) {
      const { metadata, spec } = leaseBody(record);
      // The version in the patch makes the API server refuse it when the Lease has changed.
      const body = { metadata: { ...metadata, resourceVersion: version }, spec };
      try {
        const type = 'application/merge-patch+json';
        return await leases.patch(ref, { type, body }, signal);
      } catch (error) {
        if (isKubeError(error, 'Conflict') || isKubeError(error, 'NotFound')) return 'conflict';
        throw error;
      }
    },
  };
}

function leaseBody(record: LeaseRecord) {
  return {
    metadata: { annotations: { [TERM_ANNOTATION]: String(record.term) } },
    spec: {
      holderIdentity: record.holder,
      leaseDurationSeconds: record.leaseDurationSeconds,
      acquireTime: microTime(record.acquiredAtMs),
      renewTime: microTime(record.renewedAtMs),
      leaseTransitions: record.transitions,
    },
  };
}

function parseLease(object: unknown): StoredLease {
  const { metadata, spec } = leaseSchema.parse(object);
  return {
    version: metadata.resourceVersion,
    record: {
      holder: spec?.holderIdentity ?? '',
      leaseDurationSeconds: spec?.leaseDurationSeconds ?? 0,
      acquiredAtMs: msOf(spec?.acquireTime),
      renewedAtMs: msOf(spec?.renewTime),
      transitions: spec?.leaseTransitions ?? 0,
      term: termOf(metadata.annotations?.[TERM_ANNOTATION]),
    },
  };
}

function msOf(time: string | null | undefined): number {
  const ms = Date.parse(time ?? '');
  return Number.isNaN(ms) ? 0 : ms;
}

/** 0 for what is no term; the next one is then the time, which is above all that were. */
function termOf(text: string | undefined): number {
  const term = Number(text ?? '');
  return Number.isSafeInteger(term) && term > 0 ? term : 0;
}
