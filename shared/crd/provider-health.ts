/** The ProviderHealth resource (contract §1): status only, one object per configured provider. */
import { z } from 'zod';

export const PROVIDER_HEALTH_REASONS = [
  'AllTargetsReady',
  'TargetsNotReady',
  'NoTargets',
  'Unsupported',
] as const;

export const targetHealthSchema = z
  .object({
    name: z
      .string()
      .meta({ description: 'What can fail on its own: a host, a project, a server.' }),
    ready: z.boolean().meta({ description: 'Whether the last check reached it.' }),
    reason: z.string().meta({ description: 'Machine-readable reason, in CamelCase.' }),
    message: z.string().default('').meta({ description: 'The same for a person.' }),
    details: z
      .record(z.string(), z.string())
      .optional()
      .meta({ description: 'Facts useful when triaging, such as versions or capacity.' }),
    lastTransitionTime: z.iso
      .datetime({ offset: true })
      .meta({ description: 'When ready last changed.' }),
  })
  .meta({ description: 'Verdict on one target.' });

export const providerHealthStatusSchema = z
  .object({
    type: z.string().optional().meta({ description: 'Type of the provider.' }),
    ready: z
      .enum(['True', 'False', 'Unknown'])
      .optional()
      .meta({ description: 'True when every target is ready.' }),
    targets: z
      .string()
      .optional()
      .meta({ description: 'Ready targets of all targets, such as 1/1.' }),
    reason: z.enum(PROVIDER_HEALTH_REASONS).optional().meta({
      description: 'Why ready has its value; Unsupported: the provider has no check.',
    }),
    message: z.string().optional().meta({ description: 'The same for a person.' }),
    lastCheckTime: z.iso
      .datetime({ offset: true })
      .optional()
      .meta({ description: 'When the last check ended.' }),
    targetStatuses: z
      .array(targetHealthSchema)
      .optional()
      .meta({
        description: 'Verdict on each target.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      }),
  })
  .meta({ description: 'What the last check of the provider found.' });

export type ProviderHealthStatus = z.infer<typeof providerHealthStatusSchema>;
export type TargetHealth = z.infer<typeof targetHealthSchema>;
