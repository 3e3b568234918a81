/**
 * The CustomResourceDefinitions, generated from the Zod schemas beside this file.
 *
 * A real API server takes only structural schemas: every node has a type, defaults are complete and
 * valid by themselves, patterns are RE2. What `z.toJSONSchema` writes for JavaScript readers
 * (bounds of safe integers, a pattern beside a format, escaped slashes) is dropped here.
 */
import { z } from 'zod';
import { GROUP, VERSION } from './names.ts';
import { providerHealthStatusSchema } from './provider-health.ts';
import { proxySpecSchema, proxyStatusSchema } from './proxy.ts';

/** One node of a structural schema, as plain JSON. */
export interface StructuralSchema {
  readonly type: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema;
  readonly items?: StructuralSchema;
  readonly required?: readonly string[];
  readonly [keyword: string]: unknown;
}

/** A column of `kubectl get`; priority 1 shows with `-o wide` only. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly jsonPath: string;
  readonly description: string;
  readonly priority?: number;
}

export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly scope: 'Namespaced' | 'Cluster';
    readonly names: {
      readonly kind: string;
      readonly listKind: string;
      readonly plural: string;
      readonly singular: string;
      readonly shortNames: readonly string[];
      readonly categories: readonly string[];
    };
    readonly versions: readonly {
      readonly name: string;
      readonly served: true;
      readonly storage: true;
      readonly schema: { readonly openAPIV3Schema: StructuralSchema };
      readonly subresources: { readonly status: Readonly<Record<string, never>> };
      readonly additionalPrinterColumns: readonly PrinterColumn[];
    }[];
  };
}

const AGE: PrinterColumn = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'Time since the object was created.',
};

/** Proxy: namespaced, short name `px`, category `crawl`. */
export function proxyCrd(): CustomResourceDefinition {
  return crd({
    kind: 'Proxy',
    plural: 'proxies',
    shortName: 'px',
    scope: 'Namespaced',
    description: 'An egress proxy: made by a provider (Managed) or existing already (External).',
    spec: structural(proxySpecSchema),
    status: structural(proxyStatusSchema),
    columns: [
      column('Mode', 'string', '.spec.mode', 'Managed or External.'),
      column('Provider', 'string', '.spec.provider', 'Provider that makes the proxy.'),
      column('Phase', 'string', '.status.phase', 'Where the proxy is in its life.'),
      column('IP', 'string', '.status.ip', 'Address that the proxy is reached at.'),
      column('Latency', 'integer', '.status.latencyMillis', 'Last probe, in milliseconds.'),
      AGE,
      wide(column('Egress IP', 'string', '.status.egressIP', 'Address that targets see.')),
      wide(column('Provider ID', 'string', '.status.providerID', 'Instance of the provider.')),
      wide(
        column(
          'Reason',
          'string',
          '.status.conditions[?(@.type=="Ready")].reason',
          'Why the proxy is ready or not.',
        ),
      ),
    ],
  });
}

/** ProviderHealth: cluster-scoped, status only, short name `ph`. */
export function providerHealthCrd(): CustomResourceDefinition {
  return crd({
    kind: 'ProviderHealth',
    plural: 'providerhealths',
    shortName: 'ph',
    scope: 'Cluster',
    description: 'What the last check of a configured provider found.',
    status: structural(providerHealthStatusSchema),
    columns: [
      column('Type', 'string', '.status.type', 'Type of the provider.'),
      column('Ready', 'string', '.status.ready', 'Whether every target is ready.'),
      column('Targets', 'string', '.status.targets', 'Ready targets of all targets.'),
      column('Last Check', 'date', '.status.lastCheckTime', 'Time since the last check.'),
      AGE,
    ],
  });
}

/** Every CRD of the product, in the order in which they are applied. */
export function customResourceDefinitions(): readonly CustomResourceDefinition[] {
  return [proxyCrd(), providerHealthCrd()];
}

interface CrdParts {
  readonly kind: string;
  readonly plural: string;
  readonly shortName: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly description: string;
  readonly spec?: StructuralSchema;
  readonly status: StructuralSchema;
  readonly columns: readonly PrinterColumn[];
}

function crd(parts: CrdParts): CustomResourceDefinition {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${parts.plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: parts.scope,
      names: {
        kind: parts.kind,
        listKind: `${parts.kind}List`,
        plural: parts.plural,
        singular: parts.kind.toLowerCase(),
        shortNames: [parts.shortName],
        categories: ['crawl'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: rootSchema(parts) },
          subresources: { status: {} },
          additionalPrinterColumns: parts.columns,
        },
      ],
    },
  };
}

function rootSchema(parts: CrdParts): StructuralSchema {
  return {
    type: 'object',
    description: parts.description,
    ...(parts.spec === undefined ? {} : { required: ['spec'] }),
    properties: {
      apiVersion: { type: 'string', description: 'Version of this representation of the object.' },
      kind: { type: 'string', description: 'Kind of the object.' },
      metadata: { type: 'object', description: 'Standard metadata of the object.' },
      ...(parts.spec === undefined ? {} : { spec: parts.spec }),
      status: parts.status,
    },
  };
}

function column(
  name: string,
  type: PrinterColumn['type'],
  jsonPath: string,
  description: string,
): PrinterColumn {
  return { name, type, jsonPath, description };
}

function wide(shown: PrinterColumn): PrinterColumn {
  return { ...shown, priority: 1 };
}

/** The structural schema of what a user may write (`io: 'input'`: defaulted fields optional). */
function structural(schema: z.ZodType): StructuralSchema {
  return normalize(z.toJSONSchema(schema, { io: 'input', target: 'openapi-3.0' }));
}

type SchemaNode = Readonly<Record<string, unknown>>;

const isNode = (value: unknown): value is SchemaNode =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function normalize(node: SchemaNode): StructuralSchema {
  const { type } = node;
  if (typeof type !== 'string') throw new Error(`schema without a type: ${JSON.stringify(node)}`);
  const children = normalizeChildren(node);
  const tidy = { ...node, ...children, ...normalizeString(node), ...normalizeInteger(node), type };
  const schema: StructuralSchema = withoutUndefined(tidy);
  return schema.default === undefined
    ? schema
    : { ...schema, default: completeDefault(schema, schema.default) };
}

function normalizeChildren(node: SchemaNode): Partial<StructuralSchema> {
  const { properties, items, additionalProperties } = node;
  return {
    ...(isNode(properties) && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, child]) => [name, normalizeChild(name, child)]),
      ),
    }),
    ...(isNode(items) && { items: normalize(items) }),
    ...(isNode(additionalProperties) && { additionalProperties: normalize(additionalProperties) }),
  };
}

function normalizeChild(name: string, child: unknown): StructuralSchema {
  if (!isNode(child)) throw new Error(`property ${name} is not a schema`);
  return normalize(child);
}

/** A format says it all where there is one; RE2 needs no escaped slash. */
function normalizeString({ type, format, pattern }: SchemaNode): SchemaNode {
  if (type !== 'string' || typeof pattern !== 'string') return {};
  return { pattern: format === undefined ? pattern.replaceAll('\\/', '/') : undefined };
}

const INT32_MAX = 2 ** 31 - 1;

/** Bounds that only say "safe integer" go; the format says how wide the number is. */
function normalizeInteger({ type, minimum, maximum }: SchemaNode): SchemaNode {
  if (type !== 'integer') return {};
  const bounded = typeof maximum === 'number' && maximum <= INT32_MAX;
  return {
    format: bounded ? 'int32' : 'int64',
    minimum: minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum,
    maximum: maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum,
  };
}

/**
 * API servers run the CEL rules of a node on its default as it is written, before the defaults
 * inside it apply; so it is written out in full.
 */
function completeDefault(schema: StructuralSchema, value: unknown): unknown {
  if (!isNode(value) || schema.properties === undefined) return value;
  const inner = Object.entries(schema.properties)
    .filter(([name, child]) => child.default !== undefined && value[name] === undefined)
    .map(([name, child]) => [name, child.default]);
  return { ...value, ...Object.fromEntries(inner) };
}

function withoutUndefined(node: StructuralSchema): StructuralSchema {
  const kept = Object.entries(node).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(kept), type: node.type };
}
