/** Standard Kubernetes conditions (`metav1.Condition`). */
import { z } from 'zod';

export const conditionSchema = z.object({
  type: z.string().min(1).max(316).meta({ description: 'Name of the condition.' }),
  status: z.enum(['True', 'False', 'Unknown']).meta({ description: 'State of the condition.' }),
  reason: z
    .string()
    .min(1)
    .max(1024)
    .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
    .meta({ description: 'Machine-readable reason of the last transition, in CamelCase.' }),
  message: z.string().max(32768).default('').meta({ description: 'The same for a person.' }),
  observedGeneration: z
    .number()
    .int()
    .min(0)
    .optional()
    .meta({ description: 'Generation of the object that the condition was computed from.' }),
  lastTransitionTime: z.iso
    .datetime({ offset: true })
    .meta({ description: 'When the status of the condition last changed.' }),
});

export type Condition = z.infer<typeof conditionSchema>;
export type ConditionStatus = Condition['status'];
