/**
 * The schema of one resource kind, compiled: what the server asks it when an object is written.
 * Serves custom resources (the CRD's `openAPIV3Schema`) and the built-in kinds alike.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { metaDefinitions, OBJECT_META } from '../openapi/builtin/meta.gen.ts';
import { listRuleProblems, validateRules } from './cel/rules.ts';
import { defaultValue } from './defaults.ts';
import { type FieldError, type FieldErrorType, invalid, NO_FIELD } from './field-error.ts';
import { listUnknownFields, pruneValue } from './prune.ts';
import { createNodeCompiler, type SchemaNode } from './schema-node.ts';
import { validateValue } from './validate.ts';

/** Everything that writing an object needs to know of its kind. */
export interface ResourceSchema {
  /** The compiled schema, for the patches that need list keys and merge strategies. */
  readonly root: SchemaNode;
  /** Paths of the fields that the schema does not know, such as `spec.foo`. */
  unknownFields(object: JsonObject): string[];
  /** A copy without unknown fields. */
  prune(object: JsonObject): JsonObject;
  /** A copy with the defaults filled in. */
  applyDefaults(object: JsonObject): JsonObject;
  /** Every reason to refuse the object; `old` is the stored one on an update. */
  validate(object: JsonObject, old?: JsonObject): FieldError[];
  /** What is wrong with the schema itself: CEL rules that do not compile. */
  readonly problems: readonly FieldError[];
}

export interface ResourceSchemaOptions {
  /** What `$ref` may point to, by definition name. */
  readonly definitions?: JsonObject;
  /**
   * The API server's own types fill absent fields with zero values, so nobody has to send the
   * required ones of a status.
   */
  readonly lenientStatus?: boolean;
}

/** With errors of these types the CEL rules are not evaluated, as they might not even apply. */
const BLOCKING: ReadonlySet<FieldErrorType> = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
] as const);

const RULES_NOT_CHECKED =
  'some validation rules were not checked because the object was invalid; ' +
  'correct the existing errors to complete validation';

/** Compiles the schema of a resource; metadata is always the standard ObjectMeta. */
export function compileResourceSchema(
  openAPIV3Schema: JsonObject,
  options: ResourceSchemaOptions = {},
): ResourceSchema {
  const definitions = { ...metaDefinitions, ...options.definitions };
  const root = compileRoot(openAPIV3Schema, definitions);
  const problems = listRuleProblems(root);
  const isRuled = hasRules(root);
  const isLenient = options.lenientStatus === true;
  return {
    root,
    problems,
    unknownFields: (object) => listUnknownFields(object, root),
    prune: (object) => asObject(pruneValue(object, root)),
    applyDefaults: (object) => asObject(defaultValue(object, root)),
    validate: (object, old) => {
      const found = validateValue(object, old, root);
      const errors = isLenient ? found.filter((error) => !isMissingInStatus(error)) : found;
      if (!errors.some((error) => BLOCKING.has(error.type))) {
        return [...errors, ...validateRules(object, old, root)];
      }
      return isRuled ? [...errors, invalid(NO_FIELD, null, RULES_NOT_CHECKED)] : errors;
    },
  };
}

function compileRoot(schema: JsonObject, definitions: JsonObject): SchemaNode {
  const compiler = createNodeCompiler(definitions);
  const declared = compiler.compile(schema);
  const text = compiler.compile({ type: 'string' });
  const metadata = compiler.compile({ $ref: `#/definitions/${OBJECT_META}` });
  const properties = new Map(declared.properties);
  const constraints = properties.get('metadata')?.properties ?? new Map();
  properties.set('apiVersion', properties.get('apiVersion') ?? text);
  properties.set('kind', properties.get('kind') ?? text);
  // A CRD may narrow metadata.name and metadata.generateName, and nothing else of metadata.
  properties.set('metadata', {
    ...metadata,
    properties: new Map([...metadata.properties, ...constraints]),
  });
  return { ...declared, type: 'object', nullable: false, properties };
}

function isMissingInStatus({ type, field }: FieldError): boolean {
  return type === 'FieldValueRequired' && field.startsWith('status.');
}

function hasRules(node: SchemaNode, seen: Set<SchemaNode> = new Set()): boolean {
  if (seen.has(node)) return false;
  seen.add(node);
  if (node.rules.length > 0) return true;
  const children = [...node.properties.values(), node.items, node.additional];
  return children.some((child) => child !== undefined && hasRules(child, seen));
}

function asObject(value: JsonValue): JsonObject {
  if (!isJsonObject(value)) throw new Error('a resource is a JSON object');
  return value;
}
