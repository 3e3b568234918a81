/** Machines as libvirt has them: domains, and what is left of machines that lost theirs. */
import type { KvmHost } from '../config-kvm.ts';
import type { Instance } from '../provider.ts';
import { addressOf } from './addresses.ts';
import { type DomainDefinition, parseDomain, type VolumeRef } from './domain-xml.ts';
import { formatId } from './id.ts';
import {
  DOMAIN_STATE,
  DOMAIN_XML,
  type Domain,
  isLibvirtError,
  LibvirtError,
  type Volume,
} from './libvirt/client.ts';
import type { Libvirt } from './libvirt-port.ts';
import { listPool } from './pool.ts';
import { stateOf } from './state.ts';
import { type MachineVolume, parseMachineVolume } from './volume-names.ts';
import { parseVolume } from './volume-xml.ts';

/** A domain and what its stored definition says. */
export interface Found {
  readonly domain: Domain;
  readonly definition: DomainDefinition;
}

/** undefined when the host has no domain of this name. */
export async function findDomain(
  libvirt: Libvirt,
  name: string,
  signal: AbortSignal,
): Promise<Found | undefined> {
  const domain = await unlessAbsent(libvirt.domainByName(name, signal));
  return domain && (await readDomain(libvirt, domain, signal));
}

/** undefined when the domain is gone meanwhile. */
export async function readDomain(
  libvirt: Libvirt,
  domain: Domain,
  signal: AbortSignal,
): Promise<Found | undefined> {
  // What is stored: the definition in use keeps the metadata that it was started with.
  const text = await unlessAbsent(libvirt.domainXml(domain, DOMAIN_XML.inactive, signal));
  if (text === undefined) return undefined;
  const definition = parseDomain(text);
  if (definition === undefined) throw new Error(`domain ${domain.name} is described in no XML`);
  return { domain, definition };
}

/** What `call` gives; undefined when libvirt says that there is no such thing. */
export async function unlessAbsent<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isLibvirtError(error, 'noDomain', 'noStorageVolume', 'noDomainMetadata')) return undefined;
    throw error;
  }
}

/** undefined when the domain is gone meanwhile. */
export async function toInstance(
  libvirt: Libvirt,
  host: KvmHost,
  { domain, definition }: Found,
  signal: AbortSignal,
): Promise<Instance | undefined> {
  const at = await unlessAbsent(libvirt.domainState(domain, signal));
  if (at === undefined) return undefined;
  const { machine, macs } = definition;
  const isUp = at.state === DOMAIN_STATE.running || at.state === DOMAIN_STATE.blocked;
  const ip = isUp ? await addressOf(libvirt, domain, macs, signal) : undefined;
  const { state, detail } = stateOf({ ...at, phase: machine?.phase, ip });
  return {
    id: formatId({ host: host.name, name: domain.name }),
    uid: machine?.mark?.uid ?? '',
    installation: machine?.mark?.installation ?? '',
    createdAtMs: machine?.createdAtMs ?? 0,
    state,
    detail,
    ...(ip === undefined ? {} : { ip }),
    ...(machine === undefined ? {} : { proxy: machine.proxy }),
  };
}

/** Disks and seeds under one name that belong to no domain. */
export interface Remains {
  readonly owner: MachineVolume;
  readonly volumes: readonly Volume[];
}

/**
 * Those of `volumes` that were made for machines and that none of `domains` uses, whatever its name
 * is now.
 */
export function remainsAmong(volumes: readonly Volume[], domains: readonly Found[]): Remains[] {
  const used = new Set(domains.flatMap(({ definition }) => usedBy(definition)));
  const names = new Set(domains.map(({ domain }) => domain.name));
  const byOwner = new Map<string, { owner: MachineVolume; volumes: Volume[] }>();
  for (const volume of volumes) {
    const owner = parseMachineVolume(volume.name);
    if (owner === undefined || names.has(owner.machine)) continue;
    if (used.has(refKey({ pool: volume.pool, volume: volume.name })) || used.has(volume.key)) {
      continue;
    }
    const key = JSON.stringify([owner.machine, owner.uid, owner.installation]);
    const remains = byOwner.get(key) ?? { owner, volumes: [] };
    remains.volumes.push(volume);
    byOwner.set(key, remains);
  }
  return [...byOwner.values()];
}

function usedBy({ volumes, files }: DomainDefinition): string[] {
  return [...volumes.map(refKey), ...files];
}

function refKey({ pool, volume }: VolumeRef): string {
  return JSON.stringify([pool, volume]);
}

/** A machine without a domain: it never comes back, and its name is not free before it is removed. */
export async function toRemainder(
  libvirt: Libvirt,
  host: KvmHost,
  { owner, volumes }: Remains,
  signal: AbortSignal,
): Promise<Instance> {
  let createdAtMs = 0;
  for (const volume of volumes) {
    const text = await unlessAbsent(libvirt.volumeXml(volume, signal));
    createdAtMs = Math.max(createdAtMs, (text && parseVolume(text)?.createdAtMs) || 0);
  }
  return {
    id: formatId({ host: host.name, name: owner.machine }),
    uid: owner.uid,
    installation: owner.installation,
    createdAtMs,
    state: 'Terminated',
    detail: `no domain, but ${volumes.map(({ name }) => name).join(', ')}`,
  };
}

/** Everything on a host; a domain that cannot be read is left out, and `complete` tells of it. */
export async function readDomains(
  libvirt: Libvirt,
  signal: AbortSignal,
): Promise<{ readonly found: Found[]; readonly complete: boolean }> {
  let complete = true;
  const domains = await libvirt.listDomains(signal);
  const read = await Promise.all(
    domains.map(async (domain) => {
      try {
        return await readDomain(libvirt, domain, signal);
      } catch (error) {
        if (!(error instanceof LibvirtError)) throw error;
        complete = false;
        return undefined;
      }
    }),
  );
  return { found: read.filter((each) => each !== undefined), complete };
}

/**
 * What is left under a name that no domain has. Throws when that cannot be told, as a domain that
 * cannot be read may use it.
 */
export async function findRemains(
  libvirt: Libvirt,
  host: KvmHost,
  name: string,
  signal: AbortSignal,
): Promise<Remains | undefined> {
  const volumes = (await listPool(libvirt, host, signal)).filter(
    (volume) => parseMachineVolume(volume.name)?.machine === name,
  );
  if (volumes.length === 0) return undefined;
  const { found, complete } = await readDomains(libvirt, signal);
  const [remains] = remainsAmong(volumes, found);
  if (remains === undefined || complete) return remains;
  const left = remains.volumes.map((volume) => volume.name).join(', ');
  throw new Error(`a domain of host ${host.name} cannot be read; it may use ${left}`);
}
