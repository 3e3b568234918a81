/** The part of Kubernetes metadata that the agent reads, as it stands in the API's JSON. */
import { z } from 'zod';

export const objectMetaSchema = z.object({
  name: z.string(),
  namespace: z.string().default(''),
  uid: z.string(),
  resourceVersion: z.string(),
  generation: z.number().int().default(0),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().optional(),
  finalizers: z.array(z.string()).default([]),
  labels: z.record(z.string(), z.string()).default({}),
  annotations: z.record(z.string(), z.string()).default({}),
});

export type ObjectMeta = z.infer<typeof objectMetaSchema>;

/** `namespace/name`, the key of queues and caches. */
export function objectKey(meta: { namespace: string; name: string }): string {
  return `${meta.namespace}/${meta.name}`;
}
