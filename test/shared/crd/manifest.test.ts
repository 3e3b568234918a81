import { describe, expect, it } from 'vitest';
import {
  customResourceDefinitions,
  providerHealthCrd,
  proxyCrd,
  type StructuralSchema,
} from '#shared/crd/manifest.ts';

interface VisitedNode {
  readonly path: string;
  readonly schema: StructuralSchema;
}

/** Every node of every version of every CRD, with its path. */
function allNodes(): VisitedNode[] {
  return customResourceDefinitions().flatMap((crd) =>
    crd.spec.versions.flatMap(({ schema }) => descend(crd.spec.names.kind, schema.openAPIV3Schema)),
  );
}

function descend(path: string, schema: StructuralSchema): VisitedNode[] {
  const properties = Object.entries(schema.properties ?? {});
  return [
    { path, schema },
    ...properties.flatMap(([name, child]) => descend(`${path}.${name}`, child)),
    ...(schema.items === undefined ? [] : descend(`${path}[]`, schema.items)),
    ...(schema.additionalProperties === undefined
      ? []
      : descend(`${path}{}`, schema.additionalProperties)),
  ];
}

function nodeAt(path: string): StructuralSchema {
  const found = allNodes().find((node) => node.path === path);
  if (found === undefined) throw new Error(`no schema at ${path}`);
  return found.schema;
}

const pathsWhere = (wrong: (schema: StructuralSchema) => boolean): string[] =>
  allNodes()
    .filter(({ schema }) => wrong(schema))
    .map(({ path }) => path);

/** What OpenAPI v3 in a CRD may say; a real server refuses or drops anything else. */
const KEYWORDS = new Set([
  'type',
  'format',
  'description',
  'default',
  'enum',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'properties',
  'additionalProperties',
  'maxProperties',
  'items',
  'required',
  'x-kubernetes-validations',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
]);

describe('the schemas of the CRDs', () => {
  it('give every node one of the types of a structural schema', () => {
    const types = ['object', 'array', 'string', 'integer', 'number', 'boolean'];
    expect(pathsWhere(({ type }) => !types.includes(type))).toEqual([]);
  });

  it('use only keywords that a CRD can hold', () => {
    const strange = allNodes().flatMap(({ path, schema }) =>
      Object.keys(schema)
        .filter((keyword) => !KEYWORDS.has(keyword))
        .map((keyword) => `${path}: ${keyword}`),
    );
    expect(strange).toEqual([]);
  });

  it('describe every field of a spec or status', () => {
    const leaf = (path: string) => !/\[\]$|\{\}$/.test(path);
    const silent = pathsWhere(({ description }) => !description).filter(leaf);
    expect(silent).toEqual([]);
  });

  it('write patterns that RE2 takes: no escaped slashes, no look-around, no back-references', () => {
    const wrong = pathsWhere(
      ({ pattern }) => typeof pattern === 'string' && /\\\/|\(\?[=!<]|\\[1-9]/.test(pattern),
    );
    expect(wrong).toEqual([]);
    expect(nodeAt('Proxy.spec.healthCheck.url')['pattern']).toBe('^https?://.+$');
  });

  it('say times by their format alone', () => {
    const times = allNodes().filter(({ schema }) => schema['format'] === 'date-time');
    expect(times.length).toBeGreaterThan(3);
    expect(times.filter(({ schema }) => schema['pattern'] !== undefined)).toEqual([]);
  });

  it.each([
    ['Proxy.spec.port', { format: 'int32', minimum: 1, maximum: 65535 }],
    ['Proxy.status.latencyMillis', { format: 'int64', minimum: undefined, maximum: undefined }],
    [
      'Proxy.status.conditions[].observedGeneration',
      { format: 'int64', minimum: 0, maximum: undefined },
    ],
  ])('bound the integer %s by what it means, not by what JavaScript holds', (path, expected) => {
    const { format, minimum, maximum } = nodeAt(path);
    expect({ format, minimum, maximum }).toEqual(expected);
  });

  it('complete the default of an object, so that its own rules hold on it', () => {
    expect(nodeAt('Proxy.spec.healthCheck').default).toEqual({
      expectedStatus: 200,
      intervalSeconds: 10,
      timeoutSeconds: 5,
      successThreshold: 1,
      failureThreshold: 3,
    });
  });

  it('require of a user only what has no default', () => {
    expect(nodeAt('Proxy').required).toEqual(['spec']);
    expect(nodeAt('Proxy.spec').required).toBeUndefined();
    expect(nodeAt('Proxy.spec.endpoint').required).toEqual(['host', 'port']);
    expect(nodeAt('ProviderHealth').required).toBeUndefined();
  });

  it('bound every string that a rule reads, as the cost limit of CEL asks', () => {
    expect(nodeAt('Proxy.spec.attributes')['maxProperties']).toBe(32);
    expect(nodeAt('Proxy.spec.attributes{}')['maxLength']).toBe(63);
    expect(nodeAt('Proxy.spec.provider')['maxLength']).toBe(253);
  });
});

describe('the CRDs', () => {
  it('name Proxy as the contract does', () => {
    const { metadata, spec } = proxyCrd();
    expect(metadata.name).toBe('proxies.crawl.example.com');
    expect(spec.scope).toBe('Namespaced');
    expect(spec.names).toEqual({
      kind: 'Proxy',
      listKind: 'ProxyList',
      plural: 'proxies',
      singular: 'proxy',
      shortNames: ['px'],
      categories: ['crawl'],
    });
  });

  it('name ProviderHealth as the contract does', () => {
    const { metadata, spec } = providerHealthCrd();
    expect(metadata.name).toBe('providerhealths.crawl.example.com');
    expect(spec.scope).toBe('Cluster');
    expect(spec.names).toMatchObject({ kind: 'ProviderHealth', shortNames: ['ph'] });
  });

  const columnsOf = (crd: ReturnType<typeof proxyCrd>, priority: number) =>
    crd.spec.versions[0]?.additionalPrinterColumns
      .filter((column) => (column.priority ?? 0) === priority)
      .map(({ name }) => name);

  it('print the columns of the contract, the long ones only when asked for wide', () => {
    const narrow = ['Mode', 'Provider', 'Phase', 'IP', 'Latency', 'Age'];
    expect(columnsOf(proxyCrd(), 0)).toEqual(narrow);
    expect(columnsOf(proxyCrd(), 1)).toEqual(['Egress IP', 'Provider ID', 'Reason']);
    const health = ['Type', 'Ready', 'Targets', 'Last Check', 'Age'];
    expect(columnsOf(providerHealthCrd(), 0)).toEqual(health);
  });

  it('keep status apart from what users write', () => {
    for (const crd of customResourceDefinitions()) {
      expect(crd.spec.versions.map(({ subresources }) => subresources)).toEqual([{ status: {} }]);
    }
  });
});
