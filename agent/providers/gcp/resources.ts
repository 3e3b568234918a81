/** What is read of the API's resources, parsed where they arrive; unknown fields are left out. */
import { z } from 'zod';

/** The client fills what is absent with null, '' or an empty list. */
const textSchema = z
  .string()
  .nullish()
  .transform((text) => text ?? '');
const listOf = <T extends z.ZodType>(item: T) =>
  z
    .array(item)
    .nullish()
    .transform((list) => list ?? []);
const mapSchema = z
  .record(z.string(), z.string())
  .nullish()
  .transform((map) => map ?? {});

export const instanceSchema = z.object({
  name: z.string().min(1),
  zone: textSchema,
  status: textSchema,
  statusMessage: textSchema,
  creationTimestamp: textSchema,
  description: textSchema,
  labels: mapSchema,
  labelFingerprint: textSchema,
  networkInterfaces: listOf(
    z.object({ networkIP: textSchema, accessConfigs: listOf(z.object({ natIP: textSchema })) }),
  ),
});
export type InstanceResource = z.infer<typeof instanceSchema>;

export const operationSchema = z.object({
  name: z.string().min(1),
  status: textSchema,
  operationType: textSchema,
  targetLink: textSchema,
  insertTime: textSchema,
  endTime: textSchema,
  httpErrorStatusCode: z
    .number()
    .nullish()
    .transform((status) => status ?? 0),
  error: z
    .object({ errors: listOf(z.object({ code: textSchema, message: textSchema })) })
    .nullish()
    .transform((error) => error?.errors ?? []),
});
export type OperationResource = z.infer<typeof operationSchema>;

export const firewallSchema = z.object({
  name: z.string().min(1),
  description: textSchema,
  network: textSchema,
  direction: textSchema,
  disabled: z
    .boolean()
    .nullish()
    .transform((disabled) => disabled ?? false),
  sourceRanges: listOf(z.string()),
  targetTags: listOf(z.string()),
  allowed: listOf(z.object({ IPProtocol: textSchema, ports: listOf(z.string()) })),
});
export type FirewallResource = z.infer<typeof firewallSchema>;

const warningSchema = z
  .object({ code: textSchema })
  .nullish()
  .transform((warning) => warning?.code ?? '');

export const aggregatedPageSchema = z.object({
  items: z
    .record(z.string(), z.object({ instances: listOf(instanceSchema), warning: warningSchema }))
    .nullish()
    .transform((items) => items ?? {}),
  nextPageToken: textSchema,
  unreachables: listOf(z.string()),
  warning: warningSchema,
});
export type AggregatedPage = z.infer<typeof aggregatedPageSchema>;

export const regionSchema = z.object({
  name: z.string().min(1),
  quotas: listOf(z.object({ metric: textSchema, limit: z.number(), usage: z.number() })),
});
export type RegionResource = z.infer<typeof regionSchema>;
