/** Domains as XML: what is defined, and what is read of those that exist. Pure. */
import type { Element } from '@xmldom/xmldom';
import { type MachineMetadata, metadataElement, readMetadata } from './metadata.ts';
import { child, children, parseXml, rawXml, xml } from './xml.ts';

/** A volume by the names of pool and volume. */
export interface VolumeRef {
  readonly pool: string;
  readonly volume: string;
}

export interface DomainSpec {
  readonly name: string;
  readonly uuid: string;
  readonly metadata: MachineMetadata;
  readonly virtType: 'kvm' | 'qemu';
  readonly firmware: 'efi' | 'bios';
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly disk: VolumeRef;
  readonly seed: VolumeRef;
  readonly network: string;
}

/**
 * `os` with secure boot off: many images are not signed, and libvirt would choose the firmware
 * that refuses those.
 */
const OS = {
  efi: "<os firmware='efi'><type arch='x86_64' machine='q35'>hvm</type><firmware><feature enabled='no' name='secure-boot'/></firmware></os>",
  bios: "<os><type arch='x86_64' machine='q35'>hvm</type></os>",
};
/** Emulation takes a model that needs no probing, and a bounded cache of translated code. */
const CPU = {
  kvm: "<cpu mode='host-passthrough' check='none' migratable='on'/>",
  qemu: "<cpu mode='custom' match='exact' check='none'><model fallback='forbid'>qemu64</model></cpu>",
};
const EMULATION = "<tcg><tb-cache unit='MiB'>128</tb-cache></tcg>";

/**
 * The seed is a virtio disk, not a CD-ROM: kernels of cloud images need not have a driver for SATA.
 * Disks are named by pool and volume, so that a domain can be defined before they exist.
 */
export function formatDomain(spec: DomainSpec): string {
  const { name, uuid, disk, seed } = spec;
  return (
    xml`<domain type='${spec.virtType}'><name>${name}</name><uuid>${uuid}</uuid>` +
    xml`<metadata>${rawXml(metadataElement(spec.metadata))}</metadata>` +
    xml`<memory unit='MiB'>${spec.memoryMiB}</memory><vcpu>${spec.cpus}</vcpu>` +
    OS[spec.firmware] +
    xml`<features><acpi/><apic/>${rawXml(spec.virtType === 'qemu' ? EMULATION : '')}</features>` +
    CPU[spec.virtType] +
    "<clock offset='utc'/>" +
    '<on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>' +
    '<devices>' +
    xml`<disk type='volume' device='disk'><driver name='qemu' type='qcow2'/>` +
    xml`<source pool='${disk.pool}' volume='${disk.volume}'/>` +
    xml`<target dev='vda' bus='virtio'/><boot order='1'/></disk>` +
    xml`<disk type='volume' device='disk'><driver name='qemu' type='raw'/>` +
    xml`<source pool='${seed.pool}' volume='${seed.volume}'/>` +
    xml`<target dev='vdb' bus='virtio'/><readonly/></disk>` +
    xml`<interface type='network'><mac address='${macOf(uuid)}'/>` +
    xml`<source network='${spec.network}'/><model type='virtio'/></interface>` +
    "<serial type='pty'/><console type='pty'><target type='serial'/></console>" +
    "<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>" +
    "<rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>" +
    "<memballoon model='none'/></devices></domain>"
  );
}

/**
 * Address of the one interface, in the range of QEMU. It follows from the domain's UUID, which is
 * new for each machine: a lease of the machine before it must not be taken for its own.
 */
export function macOf(uuid: string): string {
  const digits = uuid.replaceAll('-', '').slice(-6).toLowerCase();
  return `52:54:00:${digits.replace(/(..)(..)(..)/, '$1:$2:$3')}`;
}

/** What the provider reads of a domain's definition. */
export interface DomainDefinition {
  /** Absent for domains of others. */
  readonly machine?: MachineMetadata;
  readonly macs: readonly string[];
  readonly memoryBytes: number;
  /** Volumes and files that its disks are made of. */
  readonly volumes: readonly VolumeRef[];
  readonly files: readonly string[];
}

/** undefined for what is no domain. */
export function parseDomain(text: string): DomainDefinition | undefined {
  const domain = parseXml(text);
  if (domain?.localName !== 'domain') return undefined;
  const devices = child(domain, 'devices');
  const each = (name: string) => (devices === undefined ? [] : children(devices, name));
  const sources = each('disk').map((disk) => child(disk, 'source'));
  const machine = readMetadata(child(domain, 'metadata'));
  return {
    ...(machine === undefined ? {} : { machine }),
    macs: each('interface').map((one) => attribute(child(one, 'mac'), 'address').toLowerCase()),
    memoryBytes: bytesAt(child(domain, 'memory')),
    volumes: sources
      .map((source) => ({ pool: attribute(source, 'pool'), volume: attribute(source, 'volume') }))
      .filter(({ volume }) => volume !== ''),
    files: sources.map((source) => attribute(source, 'file')).filter((file) => file !== ''),
  };
}

/** libvirt gives sizes in KiB, whatever they were given in. */
function bytesAt(element: Element | undefined): number {
  const value = Number(element?.textContent ?? 0);
  return attribute(element, 'unit') === 'bytes' ? value : value * 1024;
}

function attribute(element: Element | undefined, name: string): string {
  return element?.getAttribute(name) ?? '';
}
