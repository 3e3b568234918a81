/** The `gcp` block of the providers file: where Compute Engine instances are made, and how. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { isCidr } from './cidr.ts';

/** A project's id, which may belong to a domain (`example.com:project`). */
const PROJECT_PATTERN = /^(?:[a-z][-a-z0-9.]{0,60}:)?[a-z][-a-z0-9]{0,61}[a-z0-9]?$/;
/** A resource's name (RFC 1035 label), as every Compute Engine resource has it. */
const NAME_PATTERN = /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
/** A name, or a path for what is in another project (Shared VPC). */
const NETWORK_PATTERN =
  /^(?:projects\/[a-z][-a-z0-9.:]{0,90}\/(?:global\/networks|regions\/[a-z][-a-z0-9]{0,61}\/subnetworks)\/)?[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
/** The least that a public image of a current distribution needs, and the API's own limit. */
const DISK_GB = { min: 10, default: 10, max: 65_536 } as const;
const LIST_LENGTH_MAX = 256;
const PORT_MAX = 65_535;

const nameSchema = z.string().regex(NAME_PATTERN, {
  message: 'must be lower-case letters, digits and "-", begin with a letter, at most 63 characters',
});
const networkSchema = z.string().regex(NETWORK_PATTERN, {
  message: 'must be a name, or projects/PROJECT/global/networks/NAME or …/subnetworks/NAME',
});

const firewallSchema = z.strictObject({
  /** Who may reach the proxies; there is no default, and the whole world must be written out. */
  sourceRanges: z
    .array(
      z.string().refine(isCidr, { message: 'must be an address or a CIDR such as 10.0.0.0/8' }),
    )
    .min(1)
    .max(LIST_LENGTH_MAX)
    .refine((ranges) => new Set(ranges.map(familyOf)).size === 1, {
      message: 'must not mix IPv4 and IPv6: a rule of Compute Engine takes one of them',
    }),
  /** Ports that are opened; a Proxy with another port is refused. */
  ports: z.array(z.number().int().min(1).max(PORT_MAX)).min(1).max(LIST_LENGTH_MAX).default([3128]),
});

export const gcpBlockSchema = z.strictObject({
  project: z.string().regex(PROJECT_PATTERN, { message: 'must be the id of a project' }),
  network: networkSchema.default('default'),
  /** Needed in a network of custom mode; in the region of the zone. */
  subnetwork: networkSchema.optional(),
  /** On every instance; firewall rules name it. */
  networkTag: nameSchema.default('egress-proxy'),
  diskSizeGb: z.number().int().min(DISK_GB.min).max(DISK_GB.max).default(DISK_GB.default),
  /** Which of an instance's addresses agent and crawlers use; `internal` makes no external one. */
  addressMode: z.enum(['external', 'internal']).default('external'),
  /** One rule that is made and kept as it is here; absent: firewalls are somebody else's. */
  firewall: firewallSchema.optional(),
  /** Another address of the API: a private endpoint, or an emulator on this machine. */
  endpoint: z
    .string()
    .refine(isEndpoint, {
      message: 'must be https://HOST[:PORT], or http:// on a loopback address, without a path',
    })
    .optional(),
});

export type GcpBlock = z.infer<typeof gcpBlockSchema>;
export type GcpFirewall = z.infer<typeof firewallSchema>;

/** The address belongs to this machine: what is sent there never leaves it. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'));
}

function isEndpoint(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '') return false;
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}

function familyOf(range: string): number {
  return isIP(range.split('/')[0] ?? '');
}
