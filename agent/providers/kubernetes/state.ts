/** What the provider reads of a pod, and what state of an instance it stands for. Pure. */
import { z } from 'zod';
import { PROXY_ANNOTATION } from '#shared/crd/names.ts';
import { markOf } from '../mark.ts';
import type { Instance, InstanceState } from '../provider.ts';
import { formatId } from './id.ts';

const containerStateSchema = z
  .object({
    waiting: z.object({ reason: z.string().optional() }).nullish(),
    terminated: z
      .object({ reason: z.string().optional(), exitCode: z.number().optional() })
      .nullish(),
  })
  .nullish();

const podSchema = z.object({
  metadata: z.object({
    namespace: z.string(),
    name: z.string(),
    uid: z.string(),
    creationTimestamp: z.string().nullish(),
    deletionTimestamp: z.string().nullish(),
    labels: z.record(z.string(), z.string()).nullish(),
    annotations: z.record(z.string(), z.string()).nullish(),
  }),
  status: z
    .object({
      phase: z.string().nullish(),
      reason: z.string().nullish(),
      podIP: z.string().nullish(),
      conditions: z.array(z.object({ type: z.string(), status: z.string() })).nullish(),
      containerStatuses: z.array(z.object({ state: containerStateSchema })).nullish(),
    })
    .nullish(),
});

export type Pod = z.infer<typeof podSchema>;

/** Parses the API's JSON of a pod; throws a ZodError. */
export function parsePod(object: unknown): Pod {
  return podSchema.parse(object);
}

/** The pod as an instance. */
export function instanceFromPod(pod: Pod): Instance {
  const { metadata, status } = pod;
  const { namespace } = metadata;
  const proxy = metadata.annotations?.[PROXY_ANNOTATION];
  const createdAtMs = Date.parse(metadata.creationTimestamp ?? '');
  return {
    id: formatId(metadata),
    state: stateOf(pod),
    ...markOf(metadata.labels),
    createdAtMs: Number.isNaN(createdAtMs) ? 0 : createdAtMs,
    detail: detailOf(pod),
    ...(status?.podIP ? { ip: status.podIP } : {}),
    ...(proxy === undefined ? {} : { proxy: { namespace, name: proxy } }),
  };
}

/**
 * A pod that is being deleted never runs again, though it still answers: Stopped. The policy is
 * restartPolicy Never, so a pod that ended, or whose node is lost, is Terminated. A phase that is
 * not known here counts as Stopped: pods are replaced rather than repaired.
 */
function stateOf({ metadata, status }: Pod): InstanceState {
  if (metadata.deletionTimestamp) return 'Stopped';
  switch (status?.phase ?? 'Pending') {
    case 'Pending':
      return 'Provisioning';
    case 'Running':
      return status?.podIP && isReady(status) ? 'Running' : 'Provisioning';
    case 'Succeeded':
    case 'Failed':
    case 'Unknown':
      return 'Terminated';
    default:
      return 'Stopped';
  }
}

function isReady(status: NonNullable<Pod['status']>): boolean {
  return (status.conditions ?? []).some(
    ({ type, status: is }) => type === 'Ready' && is === 'True',
  );
}

function detailOf({ metadata, status }: Pod): string {
  if (metadata.deletionTimestamp) return 'Terminating';
  const state = status?.containerStatuses?.[0]?.state;
  const exit = state?.terminated;
  const why = status?.reason ?? state?.waiting?.reason ?? exit?.reason;
  const code = exit?.exitCode === undefined ? '' : `, exit code ${exit.exitCode}`;
  return `${status?.phase ?? 'Pending'}${why ? `: ${why}` : ''}${code}`;
}
