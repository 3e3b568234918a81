/** The part of a Pod that the local node reads, parsed from the API's JSON. */
import { z } from 'zod';
import type { JsonObject } from '../control-plane/json.ts';

const portOrNameSchema = z.union([z.number().int(), z.string()]);

const probeSchema = z.object({
  tcpSocket: z.object({ port: portOrNameSchema, host: z.string().optional() }).optional(),
  httpGet: z
    .object({
      port: portOrNameSchema,
      host: z.string().optional(),
      path: z.string().default('/'),
      scheme: z.enum(['HTTP', 'HTTPS']).default('HTTP'),
    })
    .optional(),
  initialDelaySeconds: z.number().int().min(0).default(0),
  periodSeconds: z.number().int().min(1).default(10),
  timeoutSeconds: z.number().int().min(1).default(1),
  successThreshold: z.number().int().min(1).default(1),
  failureThreshold: z.number().int().min(1).default(3),
});
export type Probe = z.infer<typeof probeSchema>;

const securityContextSchema = z.object({
  runAsUser: z.number().int().min(0).optional(),
  runAsGroup: z.number().int().min(0).optional(),
});

const keyRefSchema = z.object({
  name: z.string().default(''),
  key: z.string(),
  optional: z.boolean().default(false),
});

const containerSchema = z.object({
  name: z.string(),
  image: z.string().default(''),
  command: z.array(z.string()).default([]),
  args: z.array(z.string()).default([]),
  env: z
    .array(
      z.object({
        name: z.string(),
        value: z.string().default(''),
        valueFrom: z
          .object({
            configMapKeyRef: keyRefSchema.optional(),
            secretKeyRef: keyRefSchema.optional(),
            fieldRef: z.object({ fieldPath: z.string() }).optional(),
          })
          .optional(),
      }),
    )
    .default([]),
  ports: z
    .array(z.object({ name: z.string().optional(), containerPort: z.number().int() }))
    .default([]),
  volumeMounts: z
    .array(z.object({ name: z.string(), mountPath: z.string(), subPath: z.string().default('') }))
    .default([]),
  readinessProbe: probeSchema.optional(),
  livenessProbe: probeSchema.optional(),
  startupProbe: probeSchema.optional(),
  securityContext: securityContextSchema.default({}),
});
export type Container = z.infer<typeof containerSchema>;

/** Such names become parts of file names. */
const NAME_PATTERN = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

const itemsSchema = z.array(z.object({ key: z.string(), path: z.string() })).optional();

const volumeSchema = z.looseObject({
  name: z.string(),
  configMap: z
    .object({
      name: z.string().default(''),
      items: itemsSchema,
      optional: z.boolean().default(false),
    })
    .optional(),
  secret: z
    .object({
      secretName: z.string().default(''),
      items: itemsSchema,
      optional: z.boolean().default(false),
    })
    .optional(),
  emptyDir: z.unknown().optional(),
});
export type Volume = z.infer<typeof volumeSchema>;

const podSchema = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    uid: z.string(),
    labels: z.record(z.string(), z.string()).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
    deletionTimestamp: z.string().optional(),
    deletionGracePeriodSeconds: z.number().optional(),
  }),
  spec: z.object({
    nodeName: z.string().default(''),
    restartPolicy: z.enum(['Always', 'OnFailure', 'Never']).default('Always'),
    terminationGracePeriodSeconds: z.number().int().min(0).default(30),
    containers: z.array(containerSchema),
    initContainers: z.array(containerSchema).default([]),
    volumes: z.array(volumeSchema).default([]),
    securityContext: securityContextSchema.default({}),
  }),
  status: z
    .looseObject({
      phase: z.string().default(''),
      podIP: z.string().default(''),
      startTime: z.string().optional(),
      containerStatuses: z
        .array(z.looseObject({ name: z.string(), restartCount: z.number().int().default(0) }))
        .default([]),
    })
    .default({ phase: '', podIP: '', containerStatuses: [] }),
});
export type Pod = z.infer<typeof podSchema>;
export type RestartPolicy = Pod['spec']['restartPolicy'];

/** Parses a pod; undefined when it is none that this node can read. */
export function parsePod(object: JsonObject): Pod | undefined {
  const parsed = podSchema.safeParse(object);
  return parsed.success ? parsed.data : undefined;
}

/** Path of the pod in the API. */
export function podPath(pod: Pod): string {
  const { namespace, name } = pod.metadata;
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}

/** Whether a pod has run to its end and will never run again. */
export function hasEnded(pod: Pod): boolean {
  return pod.status.phase === 'Succeeded' || pod.status.phase === 'Failed';
}

/** What this node cannot do for a pod; it would be dishonest to run such a pod half. */
export function unsupported(pod: Pod): string | undefined {
  if (pod.spec.initContainers.length > 0) return 'init containers are not run by the local node';
  const names = [...pod.spec.containers, ...pod.spec.volumes].map(({ name }) => name);
  const odd = names.find((name) => !NAME_PATTERN.test(name));
  if (odd !== undefined)
    return `name "${odd}": only lower-case letters, digits and "-" can be used`;
  for (const volume of pod.spec.volumes) {
    const known = volume.configMap ?? volume.secret ?? volume.emptyDir;
    if (known === undefined) {
      return `volume "${volume.name}": only configMap, secret and emptyDir are known here`;
    }
  }
  for (const container of pod.spec.containers) {
    const { readinessProbe, livenessProbe, startupProbe } = container;
    for (const probe of [readinessProbe, livenessProbe, startupProbe]) {
      if (probe !== undefined && (probe.tcpSocket ?? probe.httpGet) === undefined) {
        return `container "${container.name}": only tcpSocket and httpGet probes are known here`;
      }
    }
  }
  return undefined;
}
