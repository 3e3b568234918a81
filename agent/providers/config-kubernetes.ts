/** The `kubernetes` block of the providers file: how Squid pods are made. */
import { z } from 'zod';
import { isCidr } from './cidr.ts';

/** Private, shared (RFC 6598), loopback and unique-local ranges: never the whole world. */
export const DEFAULT_ALLOWED_CLIENTS = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '::1/128',
  'fc00::/7',
] as const;

/** Web ports, and what is above the system ports; leaves out mail, ssh and the like. */
export const DEFAULT_ALLOWED_PORTS = ['80', '443', '1025-65535'] as const;

/** Link-local ranges and the addresses at which clouds answer with their metadata. */
export const DEFAULT_DENIED_DESTINATIONS = [
  '169.254.0.0/16',
  'fe80::/10',
  'fd00:ec2::254/128',
  '100.100.100.200/32',
] as const;

const LIST_LENGTH_MAX = 256;
const PORT_MAX = 65535;

function isPortRange(text: string): boolean {
  const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text);
  if (match === null) return false;
  const low = Number(match[1]);
  const high = Number(match[2] ?? match[1]);
  return low >= 1 && low <= high && high <= PORT_MAX;
}

const cidrSchema = z
  .string()
  .refine(isCidr, { message: 'must be an address or a CIDR such as 10.0.0.0/8' });
const portRangeSchema = z
  .union([z.number().int().transform(String), z.string()])
  .refine(isPortRange, { message: 'must be a port or a range such as 1025-65535' });

const quantitySchema = z
  .union([z.number().positive().transform(String), z.string()])
  .refine((text) => /^\d+(\.\d+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/.test(text), {
    message: 'must be a Kubernetes quantity such as 100m or 128Mi',
  });
const resourceListSchema = z.strictObject({
  cpu: quantitySchema.optional(),
  memory: quantitySchema.optional(),
  'ephemeral-storage': quantitySchema.optional(),
});
const resourcesSchema = z.strictObject({
  requests: resourceListSchema.default({ cpu: '50m', memory: '128Mi' }),
  limits: resourceListSchema.default({ memory: '256Mi' }),
});

const tolerationSchema = z.strictObject({
  key: z.string().optional(),
  operator: z.enum(['Exists', 'Equal']).optional(),
  value: z.string().optional(),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional(),
  tolerationSeconds: z.number().int().optional(),
});

export const kubernetesBlockSchema = z.strictObject({
  /** Image whose `squid` is on the path, version 5 or newer. */
  image: z.string().min(1).max(1024),
  imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent'),
  imagePullSecrets: z.array(z.string().min(1).max(253)).max(LIST_LENGTH_MAX).default([]),
  /** Who may use the proxy, by source address. */
  allowedClients: z
    .array(cidrSchema)
    .min(1)
    .max(LIST_LENGTH_MAX)
    .default([...DEFAULT_ALLOWED_CLIENTS]),
  /** Ports of targets, for plain requests and for CONNECT alike. */
  allowedPorts: z
    .array(portRangeSchema)
    .min(1)
    .max(LIST_LENGTH_MAX)
    .default([...DEFAULT_ALLOWED_PORTS]),
  /** Addresses of targets that are refused, whatever name they were asked by. */
  deniedDestinations: z
    .array(cidrSchema)
    .max(LIST_LENGTH_MAX)
    .default([...DEFAULT_DENIED_DESTINATIONS]),
  resources: resourcesSchema.prefault({}),
  /** The image's unprivileged user; 13 is `proxy` in Debian and Ubuntu. */
  runAsUser: z.number().int().min(1).max(2_147_483_647).default(13),
  runAsGroup: z.number().int().min(1).max(2_147_483_647).default(13),
  nodeSelector: z.record(z.string(), z.string()).default({}),
  tolerations: z.array(tolerationSchema).max(LIST_LENGTH_MAX).default([]),
  terminationGracePeriodSeconds: z.number().int().min(1).max(3600).default(10),
});

export type KubernetesBlock = z.infer<typeof kubernetesBlockSchema>;
