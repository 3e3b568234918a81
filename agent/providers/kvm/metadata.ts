/**
 * What the provider keeps in the metadata of a domain, in one element that the same call writes
 * which defines the domain: whose it is, and how far it has come. Pure.
 */
import type { Element } from '@xmldom/xmldom';
import { isMarked, markLabels, markOf } from '../mark.ts';
import type { Mark } from '../provider.ts';
import { children, escapeXml, textAt, xml } from './xml.ts';

export const METADATA_URI = 'https://crawl.example.com/xmlns/machine/v1';
export const METADATA_PREFIX = 'egress';

/**
 * - `seeding`: its seed is not complete, so that `create` has to be repeated.
 * - `preparing`: image and disk are being made; it has never run. A domain that is off in this phase
 *   is on its way up, and whoever sees it goes on.
 * - `started`: it has run. A domain that is off in this phase has stopped.
 * - `deleting`: its parts are being removed, and it must not be started any more.
 */
export type Phase = 'seeding' | 'preparing' | 'started' | 'deleting';

/** What a machine was asked to be; enough to go on preparing it without the request. */
export interface Plan {
  /** Name of the image in the configuration; which one that is, the configuration of the day says. */
  readonly image: string;
  readonly diskGiB: number;
}

export interface MachineMetadata {
  /** Absent once the machine is disowned. */
  readonly mark?: Mark;
  readonly proxy: { readonly namespace: string; readonly name: string };
  readonly createdAtMs: number;
  readonly plan: Plan;
  readonly phase: Phase;
}

const PHASES: readonly string[] = ['seeding', 'preparing', 'started', 'deleting'] satisfies Phase[];

/** The element as a part of a domain's definition. */
export function metadataElement(machine: MachineMetadata): string {
  const declaration = xml` xmlns:${METADATA_PREFIX}="${METADATA_URI}"`;
  return format(machine, `${METADATA_PREFIX}:`, declaration);
}

/** The element as libvirt takes it to replace the one before: it adds the namespace by itself. */
export function bareMetadataElement(machine: MachineMetadata): string {
  return format(machine, '', '');
}

function format(
  { mark, proxy, createdAtMs, plan, phase }: MachineMetadata,
  prefix: string,
  declaration: string,
): string {
  const element = (name: string, content: string | number, attributes = '') =>
    `<${prefix}${name}${attributes}>${escapeXml(content)}</${prefix}${name}>`;
  const label = (name: string, value: string) => element('label', value, xml` name="${name}"`);
  const labels = Object.entries(mark === undefined ? {} : markLabels(mark));
  return [
    `<${prefix}machine${declaration}>`,
    ...labels.map(([name, value]) => label(name, value)),
    element('namespace', proxy.namespace),
    element('proxy', proxy.name),
    element('createdAt', new Date(createdAtMs).toISOString()),
    element('image', plan.image),
    element('diskGiB', plan.diskGiB),
    element('phase', phase),
    `</${prefix}machine>`,
  ].join('');
}

/** Reads our element below `metadata` of a domain; undefined when the domain has none. */
export function readMetadata(metadata: Element | undefined): MachineMetadata | undefined {
  const machine = metadata && children(metadata, 'machine').find(isOurs);
  if (machine === undefined) return undefined;
  const labels = Object.fromEntries(
    children(machine, 'label').map((label) => [
      label.getAttribute('name') ?? '',
      label.textContent ?? '',
    ]),
  );
  const createdAtMs = Date.parse(textAt(machine, 'createdAt') ?? '');
  const phase = textAt(machine, 'phase') ?? '';
  return {
    ...(isMarked(labels) ? { mark: markOf(labels) } : {}),
    proxy: {
      namespace: textAt(machine, 'namespace') ?? '',
      name: textAt(machine, 'proxy') ?? '',
    },
    createdAtMs: Number.isNaN(createdAtMs) ? 0 : createdAtMs,
    plan: {
      image: textAt(machine, 'image') ?? '',
      diskGiB: Number(textAt(machine, 'diskGiB') ?? Number.NaN),
    },
    // What is not known here was written by a later version: nobody starts such a machine.
    phase: PHASES.includes(phase) ? (phase as Phase) : 'started',
  };
}

function isOurs({ namespaceURI }: Element): boolean {
  return namespaceURI === METADATA_URI;
}
