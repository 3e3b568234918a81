/**
 * A schema, read once into the shape that the walkers need (pruning, defaults, validation,
 * server-side apply, strategic merge). Knows the keywords of structural schemas and of the
 * built-in kinds; `$ref` points into the given definitions and may be recursive.
 */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  objectOf,
  objects,
  own,
  stringOf,
  strings,
} from '../json.ts';

export type SchemaType = 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';

/** A rule of `x-kubernetes-validations`, not yet compiled. */
export interface ValidationRule {
  readonly rule: string;
  readonly message: string;
  readonly messageExpression: string;
  readonly reason: string;
  readonly fieldPath: string;
  readonly optionalOldSelf: boolean;
}

/** One place of a schema. */
export interface SchemaNode {
  /** The keywords as written; value checks (`minimum`, `pattern`, …) read them here. */
  readonly raw: JsonObject;
  /** Undefined: any JSON value. */
  readonly type: SchemaType | undefined;
  readonly intOrString: boolean;
  readonly nullable: boolean;
  readonly properties: ReadonlyMap<string, SchemaNode>;
  readonly required: readonly string[];
  /** Schema of the values of a map. */
  readonly additional: SchemaNode | undefined;
  readonly items: SchemaNode | undefined;
  readonly preserveUnknown: boolean;
  readonly embeddedResource: boolean;
  readonly default: JsonValue | undefined;
  readonly listType: 'atomic' | 'set' | 'map';
  readonly listKeys: readonly string[];
  readonly atomicMap: boolean;
  readonly patchMergeKey: string | undefined;
  readonly patchStrategies: readonly string[];
  readonly rules: readonly ValidationRule[];
  readonly allOf: readonly SchemaNode[];
  readonly anyOf: readonly SchemaNode[];
  readonly oneOf: readonly SchemaNode[];
  readonly not: SchemaNode | undefined;
}

/** Compiles schemas that may refer to shared definitions. */
export interface NodeCompiler {
  compile(schema: JsonObject): SchemaNode;
}

type MutableNode = { -readonly [K in keyof SchemaNode]: SchemaNode[K] };

const REF_PREFIXES = ['#/definitions/', '#/components/schemas/'];
const TYPES: ReadonlySet<string> = new Set([
  'object',
  'array',
  'string',
  'integer',
  'number',
  'boolean',
]);

/** A compiler over a set of definitions; each definition is compiled at most once. */
export function createNodeCompiler(definitions: JsonObject = {}): NodeCompiler {
  const byRef = new Map<string, SchemaNode>();

  function compileRef(ref: string): SchemaNode {
    const known = byRef.get(ref);
    if (known !== undefined) return known;
    const prefix = REF_PREFIXES.find((candidate) => ref.startsWith(candidate)) ?? '';
    const definition = own(definitions, ref.slice(prefix.length));
    if (!isJsonObject(definition)) throw new Error(`schema refers to an unknown ${ref}`);
    // Registered before it is filled, so that a schema may contain itself.
    const node = anyNode(definition);
    byRef.set(ref, node);
    fill(node, definition);
    return node;
  }

  function compile(schema: JsonObject): SchemaNode {
    const ref = schema.$ref;
    if (typeof ref === 'string') return compileRef(ref);
    const node = anyNode(schema);
    fill(node, schema);
    return node;
  }

  function compileAll(value: JsonValue | undefined): SchemaNode[] {
    return objects(value).map(compile);
  }

  function compileOptional(value: JsonValue | undefined): SchemaNode | undefined {
    return isJsonObject(value) ? compile(value) : undefined;
  }

  function fill(node: MutableNode, schema: JsonObject): void {
    readKeywords(node, schema);
    node.properties = new Map(
      Object.entries(objectOf(schema.properties)).flatMap(([name, value]) =>
        isJsonObject(value) ? [[name, compile(value)] as const] : [],
      ),
    );
    node.additional =
      schema.additionalProperties === true
        ? anyNode({})
        : compileOptional(schema.additionalProperties);
    node.items = compileOptional(schema.items);
    node.allOf = compileAll(schema.allOf);
    node.anyOf = compileAll(schema.anyOf);
    node.oneOf = compileAll(schema.oneOf);
    node.not = compileOptional(schema.not);
  }

  return { compile };
}

/** The node that accepts every JSON value. */
export function anyNode(raw: JsonObject): MutableNode {
  return {
    raw,
    type: undefined,
    intOrString: false,
    nullable: true,
    properties: new Map(),
    required: [],
    additional: undefined,
    items: undefined,
    preserveUnknown: true,
    embeddedResource: false,
    default: undefined,
    listType: 'atomic',
    listKeys: [],
    atomicMap: false,
    patchMergeKey: undefined,
    patchStrategies: [],
    rules: [],
    allOf: [],
    anyOf: [],
    oneOf: [],
    not: undefined,
  };
}

function readKeywords(node: MutableNode, schema: JsonObject): void {
  const type = schema.type;
  node.type = isSchemaType(type) ? type : undefined;
  node.intOrString =
    schema['x-kubernetes-int-or-string'] === true || schema.format === 'int-or-string';
  if (node.intOrString) node.type = undefined;
  node.preserveUnknown =
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    (node.type === undefined && !node.intOrString && !isJsonObject(schema.properties));
  node.nullable = schema.nullable === true || (node.type === undefined && !node.intOrString);
  node.required = strings(schema.required);
  node.embeddedResource = schema['x-kubernetes-embedded-resource'] === true;
  node.default = schema.default;
  const listType = schema['x-kubernetes-list-type'];
  node.listType = listType === 'map' || listType === 'set' ? listType : 'atomic';
  node.listKeys = strings(schema['x-kubernetes-list-map-keys']);
  node.atomicMap = schema['x-kubernetes-map-type'] === 'atomic';
  const mergeKey = schema['x-kubernetes-patch-merge-key'];
  node.patchMergeKey = typeof mergeKey === 'string' ? mergeKey : undefined;
  const strategy = schema['x-kubernetes-patch-strategy'];
  node.patchStrategies = typeof strategy === 'string' ? strategy.split(',') : [];
  node.rules = readRules(schema['x-kubernetes-validations']);
}

function readRules(value: JsonValue | undefined): ValidationRule[] {
  return objects(value).map((rule) => ({
    rule: stringOf(rule.rule).trim(),
    message: stringOf(rule.message).trim(),
    messageExpression: stringOf(rule.messageExpression).trim(),
    reason: stringOf(rule.reason),
    fieldPath: stringOf(rule.fieldPath),
    optionalOldSelf: rule.optionalOldSelf === true,
  }));
}

function isSchemaType(value: JsonValue | undefined): value is SchemaType {
  return typeof value === 'string' && TYPES.has(value);
}
