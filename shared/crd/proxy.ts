/**
 * The Proxy resource (contract §1): one schema that gives the types, the parser of what the API
 * server returns, and the CRD manifest. CEL rules stand beside the fields that they guard.
 */
import { z } from 'zod';
import { attributesSchema } from './attributes.ts';
import { conditionSchema } from './condition.ts';
import { objectMetaSchema } from './object-meta.ts';

/** A CEL rule as the API server takes it under `x-kubernetes-validations`. */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired';
  readonly fieldPath?: string;
}

const cel = (...rules: CelRule[]) => ({ 'x-kubernetes-validations': rules });
const immutable = (field: string) =>
  cel({ rule: 'self == oldSelf', message: `${field} is immutable` });

const portSchema = z.number().int().min(1).max(65535);
const secretNameSchema = z.string().min(1).max(253);

const endpointSchema = z
  .object({
    host: z.string().min(1).max(253).meta({ description: 'Host name or address.' }),
    port: portSchema.meta({ description: 'Port that the proxy listens on.' }),
    protocol: z
      .enum(['http', 'https', 'socks5'])
      .default('http')
      .meta({ description: 'How to speak to the proxy itself.' }),
    authSecretRef: z
      .object({
        name: secretNameSchema.meta({
          description: 'Secret with the keys username and password, in the namespace of the Proxy.',
        }),
      })
      .optional()
      .meta({ description: 'Credentials of the proxy.' }),
  })
  .meta({ description: 'Where an External proxy is reached.' });

const placementSchema = z
  .object({
    region: z.string().max(253).optional().meta({ description: 'Region of the provider.' }),
    zone: z.string().max(253).optional().meta({ description: 'Zone or host of the provider.' }),
    machineType: z.string().max(253).optional().meta({ description: 'Size of the machine.' }),
    image: z.string().max(1024).optional().meta({ description: 'Image that the machine boots.' }),
  })
  .meta({ description: 'Where and as what a managed proxy is made.' });

const cloudInitSchema = z
  .object({
    inline: z.string().max(65536).optional().meta({ description: 'The user-data itself.' }),
    secretRef: z
      .object({
        name: secretNameSchema.meta({ description: 'Secret in the namespace of the Proxy.' }),
        key: z.string().max(253).default('user-data').meta({ description: 'Key in the Secret.' }),
      })
      .optional()
      .meta({
        description: 'Secret with the user-data; it carries crawl.example.com/cloud-init: "true".',
      }),
  })
  .meta({
    description: 'User-data of a managed machine: either inline or from a Secret.',
    ...cel({
      rule: 'has(self.inline) != has(self.secretRef)',
      message: 'exactly one of inline and secretRef must be set',
    }),
  });

const healthCheckSchema = z
  .object({
    url: z
      .string()
      .max(2048)
      .regex(/^https?:\/\/.+$/)
      .optional()
      .meta({
        description: 'What to fetch through the proxy; the echo page of the edge if unset.',
      }),
    expectedStatus: z
      .number()
      .int()
      .min(100)
      .max(599)
      .default(200)
      .meta({ description: 'HTTP status that counts as healthy.' }),
    intervalSeconds: z
      .number()
      .int()
      .min(1)
      .max(86400)
      .default(10)
      .meta({ description: 'Time between two probes.' }),
    timeoutSeconds: z
      .number()
      .int()
      .min(1)
      .max(86400)
      .default(5)
      .meta({ description: 'Longest time of one probe.' }),
    successThreshold: z
      .number()
      .int()
      .min(1)
      .max(100)
      .default(1)
      .meta({ description: 'Successes in a row that make an unhealthy proxy healthy.' }),
    failureThreshold: z
      .number()
      .int()
      .min(1)
      .max(100)
      .default(3)
      .meta({ description: 'Failures in a row that make a healthy proxy unhealthy.' }),
  })
  .meta({
    description: 'How the proxy is probed, through itself.',
    ...cel({
      rule: 'self.timeoutSeconds <= self.intervalSeconds',
      message: 'timeoutSeconds must not be greater than intervalSeconds',
      fieldPath: '.timeoutSeconds',
    }),
  });

export const proxySpecSchema = z
  .object({
    mode: z
      .enum(['Managed', 'External'])
      .default('Managed')
      .meta({
        description: 'Managed: the agent makes the proxy. External: it exists already.',
        ...immutable('mode'),
      }),
    provider: z
      .string()
      .min(1)
      .max(253)
      .optional()
      .meta({
        description: 'Name of the provider that makes a managed proxy.',
        ...immutable('provider'),
      }),
    endpoint: endpointSchema.optional(),
    placement: placementSchema.optional(),
    cloudInit: cloudInitSchema.optional(),
    port: portSchema.default(3128).meta({ description: 'Port that a managed proxy listens on.' }),
    attributes: attributesSchema.optional(),
    maxLeases: z
      .number()
      .int()
      .min(1)
      .max(1_000_000)
      .default(10)
      .meta({ description: 'Leases held at once.' }),
    healthCheck: healthCheckSchema.prefault({}),
    paused: z
      .boolean()
      .default(false)
      .meta({ description: 'No loop acts on the object; probes and leases go on.' }),
    leasable: z
      .boolean()
      .default(true)
      .meta({ description: 'false: never offered to crawlers (cordoned).' }),
    deletionPolicy: z
      .enum(['Delete', 'Orphan'])
      .default('Delete')
      .meta({ description: 'Orphan leaves the instance running when the object is deleted.' }),
    drainSeconds: z
      .number()
      .int()
      .min(0)
      .max(86400)
      .default(0)
      .meta({ description: 'Longest wait for leases to end before an instance is destroyed.' }),
  })
  .meta({
    description: 'What the proxy should be.',
    ...cel(
      {
        rule: "self.mode != 'Managed' || has(self.provider)",
        message: 'provider is required when mode is Managed',
        reason: 'FieldValueRequired',
        fieldPath: '.provider',
      },
      {
        rule: "self.mode != 'External' || !has(self.provider)",
        message: 'provider must not be set when mode is External',
        reason: 'FieldValueForbidden',
        fieldPath: '.provider',
      },
      {
        rule: "self.mode != 'External' || has(self.endpoint)",
        message: 'endpoint is required when mode is External',
        reason: 'FieldValueRequired',
        fieldPath: '.endpoint',
      },
      {
        rule: "self.mode != 'Managed' || !has(self.endpoint)",
        message: 'endpoint must not be set when mode is Managed',
        reason: 'FieldValueForbidden',
        fieldPath: '.endpoint',
      },
      {
        rule: "self.mode != 'External' || !has(self.placement)",
        message: 'placement must not be set when mode is External',
        reason: 'FieldValueForbidden',
        fieldPath: '.placement',
      },
      {
        rule: "self.mode != 'External' || !has(self.cloudInit)",
        message: 'cloudInit must not be set when mode is External',
        reason: 'FieldValueForbidden',
        fieldPath: '.cloudInit',
      },
    ),
  });

export const PROXY_PHASES = [
  'Pending',
  'Provisioning',
  'Ready',
  'Unhealthy',
  'Replacing',
  'Draining',
  'Deleting',
  'Failed',
] as const;

export const proxyStatusSchema = z
  .object({
    phase: z.enum(PROXY_PHASES).optional().meta({ description: 'Where the proxy is in its life.' }),
    observedGeneration: z
      .number()
      .int()
      .optional()
      .meta({ description: 'Generation that the status was computed from.' }),
    providerID: z
      .string()
      .optional()
      .meta({ description: 'Where the provider finds the instance.' }),
    instanceCreationTime: z.string().optional().meta({
      format: 'date-time',
      description: 'When the instance was made, as its provider has it.',
    }),
    ip: z.string().optional().meta({ description: 'Address that the proxy is reached at.' }),
    port: z.number().int().optional().meta({ description: 'Port that the proxy listens on.' }),
    egressIP: z
      .string()
      .optional()
      .meta({ description: 'Address that targets see, as learned by the last probe.' }),
    latencyMillis: z
      .number()
      .int()
      .optional()
      .meta({ description: 'Time of the last status-affecting probe, in milliseconds.' }),
    lastHealthCheckTime: z.iso
      .datetime({ offset: true })
      .optional()
      .meta({ description: 'When the last status-affecting probe ended.' }),
    conditions: z
      .array(conditionSchema)
      .optional()
      .meta({
        description: 'Provisioned, Healthy, Draining while that goes on, and the summary Ready.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['type'],
      }),
  })
  .meta({ description: 'What the agent found; never written by users.' });

export const proxySchema = z.object({
  metadata: objectMetaSchema,
  spec: proxySpecSchema,
  status: proxyStatusSchema.default({}),
});

export type Proxy = z.infer<typeof proxySchema>;
export type ProxySpec = z.infer<typeof proxySpecSchema>;
export type ProxyStatus = z.infer<typeof proxyStatusSchema>;
export type ProxyPhase = (typeof PROXY_PHASES)[number];
export type ProxyProtocol = z.infer<typeof endpointSchema>['protocol'];
export type Placement = z.infer<typeof placementSchema>;
