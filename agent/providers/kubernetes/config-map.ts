/** The part of a ConfigMap that the provider reads. */
import { z } from 'zod';

export const configMapSchema = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    resourceVersion: z.string(),
    ownerReferences: z.array(z.object({ uid: z.string() })).nullish(),
  }),
});
export type ConfigMap = z.infer<typeof configMapSchema>;

export function isOwnedBy(configMap: ConfigMap, uid: string): boolean {
  return (configMap.metadata.ownerReferences ?? []).some((owner) => owner.uid === uid);
}
