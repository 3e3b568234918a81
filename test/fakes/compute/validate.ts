/** What the API refuses of an instance before it accepts an insert. */
import { createRequire } from 'node:module';
import { ApiFailure, invalid, notFound, required } from './api-failure.ts';

export interface Catalogue {
  readonly project: string;
  readonly zones: readonly string[];
  readonly machineTypes: readonly string[];
  /** As paths: `projects/debian-cloud/global/images/family/debian-13`. */
  readonly images: readonly string[];
  readonly networks: readonly string[];
}

export const NAME = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;
const LABEL_KEY = /^[a-z][a-z0-9_-]{0,62}$/;
const LABEL_VALUE = /^[a-z0-9_-]{0,63}$/;
const LABELS_MAX = 64;
const METADATA_VALUE_MAX = 262_144;
const PATTERN_TEXT = "Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'";

/** What each object is called in the API's own description. */
const MESSAGES = {
  instance: 'Instance',
  disk: 'AttachedDisk',
  initializeParams: 'AttachedDiskInitializeParams',
  networkInterface: 'NetworkInterface',
  accessConfig: 'AccessConfig',
  tags: 'Tags',
  metadata: 'Metadata',
  item: 'Items',
  firewall: 'Firewall',
} as const;

export type Json = Record<string, unknown>;

export const objectOf = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
export const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value.map(objectOf) : []);

export function validateInstance(body: Json, zone: string, catalogue: Catalogue): void {
  known(body, 'instance', 'resource');
  if (body['name'] === undefined) throw required('resource.name');
  if (!NAME.test(String(body['name']))) {
    throw invalid('resource.name', body['name'], PATTERN_TEXT);
  }
  validateLabels(body['labels'], 'resource.labels');
  const machineType = lastOf(body['machineType']);
  if (machineType === '') throw required('resource.machineType');
  if (!String(body['machineType']).includes(`zones/${zone}/machineTypes/`)) {
    throw invalid('resource.machineType', body['machineType'], 'Must be a URL to a resource');
  }
  if (!catalogue.machineTypes.includes(machineType)) {
    const why = `Machine type with name '${machineType}' does not exist in zone '${zone}'.`;
    throw invalid('resource.machineType', body['machineType'], why);
  }
  validateDisks(body, catalogue);
  validateNetwork(body, catalogue);
  validateMetadata(body);
  const tags = objectOf(body['tags']);
  known(tags, 'tags', 'resource.tags');
  const items = Array.isArray(tags['items']) ? tags['items'] : [];
  for (const tag of items) {
    if (!NAME.test(String(tag))) throw invalid('resource.tags.items', tag, PATTERN_TEXT);
  }
}

export function validateLabels(labels: unknown, field: string): void {
  const entries = Object.entries(objectOf(labels));
  if (entries.length > LABELS_MAX) throw invalid(field, '', 'Too many labels.');
  for (const [key, value] of entries) {
    if (!LABEL_KEY.test(key)) throw invalid(field, key, 'Label key is not valid.');
    if (typeof value !== 'string' || !LABEL_VALUE.test(value)) {
      throw invalid(field, value, "Label value must match '[a-z0-9_-]{0,63}'.");
    }
  }
}

function validateDisks(body: Json, { images, project }: Catalogue): void {
  const disks = listOf(body['disks']);
  const boot = disks.find((disk) => disk['boot'] === true);
  if (boot === undefined) {
    throw invalid('resource.disks', '', 'At least one disk, the boot disk, must be specified.');
  }
  for (const disk of disks) {
    known(disk, 'disk', 'resource.disks');
    const parameters = objectOf(disk['initializeParams']);
    known(parameters, 'initializeParams', 'resource.disks.initializeParams');
    validateLabels(parameters['labels'], 'resource.disks.initializeParams.labels');
    const image = String(parameters['sourceImage'] ?? '');
    if (image === '') throw required('resource.disks.initializeParams.sourceImage');
    const path = image.startsWith('projects/') ? image : `projects/${project}/${image}`;
    if (!images.includes(path)) throw notFound(path);
    const size = Number(parameters['diskSizeGb'] ?? 10);
    if (!Number.isInteger(size) || size < 10 || size > 65_536) {
      throw invalid('resource.disks.initializeParams.diskSizeGb', size, 'Disk size is not valid.');
    }
  }
}

function validateNetwork(body: Json, { networks, project }: Catalogue): void {
  const interfaces = listOf(body['networkInterfaces']);
  if (interfaces.length === 0) throw required('resource.networkInterfaces');
  for (const nic of interfaces) {
    known(nic, 'networkInterface', 'resource.networkInterfaces');
    const network = String(nic['network'] ?? 'global/networks/default');
    if (!networks.includes(lastOf(network))) throw notFound(`projects/${project}/${network}`);
    for (const access of listOf(nic['accessConfigs'])) {
      known(access, 'accessConfig', 'resource.networkInterfaces.accessConfigs');
      if (access['type'] !== 'ONE_TO_ONE_NAT') {
        throw invalid('resource.networkInterfaces.accessConfigs.type', access['type'], 'Unknown.');
      }
    }
  }
}

function validateMetadata(body: Json): void {
  const metadata = objectOf(body['metadata']);
  known(metadata, 'metadata', 'resource.metadata');
  for (const item of listOf(metadata['items'])) {
    known(item, 'item', 'resource.metadata.items');
    if (!/^[a-zA-Z0-9-_]{1,128}$/.test(String(item['key']))) {
      throw invalid('resource.metadata.items.key', item['key'], 'Key is not valid.');
    }
    const { length } = Buffer.from(String(item['value'] ?? ''));
    if (length > METADATA_VALUE_MAX) {
      const message = `Value for field 'resource.metadata.items[0].value' is too large: maximum size ${METADATA_VALUE_MAX} character(s); actual size ${length}.`;
      throw new ApiFailure(413, 'uploadTooLarge', message);
    }
  }
}

/** Refuses what the API does not know. */
export function known(object: Json, kind: keyof typeof MESSAGES, path: string): void {
  const fields = fieldsOf(MESSAGES[kind]);
  for (const key of Object.keys(object)) {
    if (fields.has(key)) continue;
    const message = `Invalid JSON payload received. Unknown name "${key}" at '${path}': Cannot find field.`;
    throw new ApiFailure(400, 'badRequest', message);
  }
}

export function lastOf(value: unknown): string {
  const text = typeof value === 'string' ? value : '';
  return text.slice(text.lastIndexOf('/') + 1);
}

interface Description {
  readonly nested: Readonly<Record<string, Description>>;
  readonly fields?: Readonly<Record<string, unknown>>;
}
let description: Description | undefined;

/** Of the description of the API that is published with the official client. */
function fieldsOf(message: string): ReadonlySet<string> {
  const path = '@google-cloud/compute/build/protos/protos.json';
  description ??= createRequire(import.meta.url)(path) as Description;
  let at: Description | undefined = description;
  for (const name of ['google', 'cloud', 'compute', 'v1', message]) at = at?.nested[name];
  return new Set(Object.keys(at?.fields ?? {}));
}
