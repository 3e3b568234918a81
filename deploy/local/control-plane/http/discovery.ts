/** What clients ask first: versions, groups and resources, in the old form and in one document. */
import type { JsonObject } from '../json.ts';
import { type ApiResource, apiVersionOf, isPods, STORED_VERBS } from '../registry/api-resource.ts';
import type { ResourceRegistry } from '../registry/resource-registry.ts';
import { REVIEWS, type Review } from './reviews.ts';

const SUBRESOURCE_VERBS = ['get', 'patch', 'update'];

/** The version of the API whose behaviour this server follows. */
export function versionInfo(): JsonObject {
  return {
    major: '1',
    minor: '32',
    gitVersion: 'v1.32.0+egress',
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: '',
    platform: `${process.platform}/${process.arch}`,
  };
}

interface Subresource {
  readonly name: string;
  readonly verbs: readonly string[];
}

/** A served resource, or something that is only asked. */
interface Entry {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly string[];
  readonly subresources: readonly Subresource[];
}

function storedEntry(resource: ApiResource): Entry {
  const status = resource.statusSubresource ? [{ name: 'status', verbs: SUBRESOURCE_VERBS }] : [];
  const ofPods = [
    { name: 'binding', verbs: ['create'] },
    { name: 'log', verbs: ['get'] },
  ];
  const subresources = [...(isPods(resource) ? ofPods : []), ...status];
  return { ...resource, verbs: STORED_VERBS, subresources };
}

function reviewEntry(review: Review): Entry {
  return {
    ...review,
    namespaced: false,
    shortNames: [],
    categories: [],
    verbs: ['create'],
    subresources: [],
  };
}

function entries(registry: ResourceRegistry): Entry[] {
  return [...registry.all().map(storedEntry), ...REVIEWS.map(reviewEntry)];
}

/** Versions of each group, preferred first. */
function groupVersions(registry: ResourceRegistry): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const { group, version } of entries(registry)) {
    const versions = groups.get(group) ?? [];
    if (!versions.includes(version)) versions.push(version);
    groups.set(group, versions);
  }
  return groups;
}

/** GET /api */
export function coreVersions(address: string): JsonObject {
  return {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: address }],
  };
}

/** GET /apis */
export function apiGroupList(registry: ResourceRegistry): JsonObject {
  const groups = [...groupVersions(registry)].filter(([group]) => group !== '');
  return {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: groups.map(([group, versions]) => groupObject(group, versions)),
  };
}

/** GET /apis/{group} */
export function apiGroup(registry: ResourceRegistry, group: string): JsonObject | undefined {
  const versions = group === '' ? undefined : groupVersions(registry).get(group);
  if (versions === undefined) return undefined;
  return { kind: 'APIGroup', apiVersion: 'v1', ...groupObject(group, versions) };
}

function groupObject(group: string, versions: readonly string[]): JsonObject {
  const named = versions.map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions: named, preferredVersion: named[0] ?? null };
}

/** GET /api/v1 and /apis/{group}/{version} */
export function resourceList(
  registry: ResourceRegistry,
  group: string,
  version: string,
): JsonObject | undefined {
  const served = entries(registry).filter((one) => one.group === group && one.version === version);
  if (served.length === 0) return undefined;
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: apiVersionOf({ group, version }),
    resources: served.flatMap(listedResources),
  };
}

function listedResources(entry: Entry): JsonObject[] {
  const { plural, singular, namespaced, kind, verbs, shortNames, categories } = entry;
  return [
    {
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs: [...verbs],
      ...(shortNames.length > 0 && { shortNames: [...shortNames] }),
      ...(categories.length > 0 && { categories: [...categories] }),
    },
    ...entry.subresources.map((subresource) => ({
      name: `${plural}/${subresource.name}`,
      singularName: '',
      namespaced,
      kind,
      verbs: [...subresource.verbs],
    })),
  ];
}

/** GET /api or /apis of clients that take everything at once. */
export function aggregatedDiscovery(
  registry: ResourceRegistry,
  version: string,
  root: 'api' | 'apis',
): JsonObject {
  const all = entries(registry);
  const groups = [...groupVersions(registry)].filter(
    ([group]) => (group === '') === (root === 'api'),
  );
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: groups.map(([group, versions]) => ({
      metadata: { ...(group !== '' && { name: group }), creationTimestamp: null },
      versions: versions.map((one) => ({
        version: one,
        resources: all
          .filter((entry) => entry.group === group && entry.version === one)
          .map(discoveredResource),
        freshness: 'Current',
      })),
    })),
  };
}

function discoveredResource(entry: Entry): JsonObject {
  const { group, version, kind, shortNames, categories } = entry;
  const responseKind = { group, version, kind };
  return {
    resource: entry.plural,
    responseKind,
    scope: entry.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: entry.singular,
    verbs: [...entry.verbs],
    ...(shortNames.length > 0 && { shortNames: [...shortNames] }),
    ...(categories.length > 0 && { categories: [...categories] }),
    ...(entry.subresources.length > 0 && {
      subresources: entry.subresources.map((subresource) => ({
        subresource: subresource.name,
        responseKind,
        verbs: [...subresource.verbs],
      })),
    }),
  };
}
