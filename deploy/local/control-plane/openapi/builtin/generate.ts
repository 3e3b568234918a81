/**
 * Writes the `*.gen.ts` files beside it: the OpenAPI definitions of the built-in kinds, read from
 * the models of `@kubernetes/client-node` (structure, required fields, descriptions), with the
 * overlay on top. Run it after an update of the client or a change here:
 * `node deploy/local/control-plane/openapi/builtin/generate.ts [--check]`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import type { JsonObject } from '../../json.ts';
import { BUILTIN_PACKAGES, type BuiltinPackage, shortName } from './kinds.ts';
import { DEFINITION_OVERLAY, PROPERTY_OVERLAY, QUANTITY_MAPS } from './overlay.ts';

interface Attribute {
  readonly name: string;
  readonly baseName: string;
  readonly type: string;
  readonly format: string;
}

interface Model {
  readonly description: string;
  readonly properties: ReadonlyMap<string, { description: string; optional: boolean }>;
  readonly attributes: readonly Attribute[];
}

const PROPERTY = /(?:\/\*\*\n {4}\* (.*)\n {4}\*\/\n)? {4}'([^']+)'(\?)?:/g;
const CLASS = /\/\*\*\n\* (.*)\n\*\/\nexport declare class/;
const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity';

/** The text of every generated file, by file name. */
export async function generateBuiltins(): Promise<Map<string, string>> {
  const owners = new Map<string, BuiltinPackage>();
  const models = new Map<string, Model>();
  for (const builtin of BUILTIN_PACKAGES) {
    for (const name of [...builtin.models, ...Object.values(builtin.kinds)]) {
      await collect(name, builtin, owners, models);
    }
  }
  const files = BUILTIN_PACKAGES.map((builtin): [string, string] => {
    const names = [...models.keys()].filter((name) => owners.get(name) === builtin).sort();
    const definitions: JsonObject = Object.fromEntries(
      names.map((name) => [
        `${builtin.package}.${shortName(name)}`,
        describeModel(name, models, owners, builtin),
      ]),
    );
    if (builtin.file === 'meta') definitions[QUANTITY] = quantityDefinition();
    return [`${builtin.file}.gen.ts`, fileText(builtin, definitions)];
  });
  return new Map(files);
}

async function collect(
  name: string,
  builtin: BuiltinPackage,
  owners: Map<string, BuiltinPackage>,
  models: Map<string, Model>,
): Promise<void> {
  if (models.has(name)) return;
  const model = await readModel(name);
  models.set(name, model);
  owners.set(name, builtin);
  for (const { type } of model.attributes) {
    for (const [reference] of type.matchAll(/\b(?:[A-Z][a-z]+)?V1[A-Z]\w+/g)) {
      if (reference !== 'V1MicroTime') await collect(reference, builtin, owners, models);
    }
  }
}

async function readModel(name: string): Promise<Model> {
  const entry = import.meta.resolve('@kubernetes/client-node');
  const declaration = readFileSync(new URL(`gen/models/${name}.d.ts`, entry), 'utf8');
  const module: unknown = await import(new URL(`gen/models/${name}.js`, entry).href);
  const properties = [...declaration.matchAll(PROPERTY)].map(
    ([, description = '', property = '', mark]) =>
      [property, { description: unescapeText(description), optional: mark === '?' }] as const,
  );
  return {
    description: unescapeText(CLASS.exec(declaration)?.[1] ?? ''),
    properties: new Map(properties),
    attributes: attributesOf(module, name),
  };
}

function attributesOf(module: unknown, name: string): Attribute[] {
  const model = property(module, name);
  const attributes = property(model, 'attributeTypeMap');
  if (!Array.isArray(attributes)) throw new Error(`${name} has no attributeTypeMap`);
  return attributes;
}

function property(value: unknown, key: string): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null)
    return undefined;
  return Reflect.get(value, key);
}

function describeModel(
  name: string,
  models: ReadonlyMap<string, Model>,
  owners: ReadonlyMap<string, BuiltinPackage>,
  builtin: BuiltinPackage,
): JsonObject {
  const model = models.get(name);
  if (model === undefined) throw new Error(`${name} was not collected`);
  const short = shortName(name);
  const required: string[] = [];
  const properties: JsonObject = {};
  for (const attribute of model.attributes) {
    const documented = model.properties.get(attribute.name);
    if (documented?.optional === false) required.push(attribute.baseName);
    const path = `${short}.${attribute.baseName}`;
    properties[attribute.baseName] = {
      ...(documented?.description ? { description: documented.description } : {}),
      ...schemaOf(attribute.type, attribute.format, owners, path),
      ...PROPERTY_OVERLAY[path],
    };
  }
  const kind = Object.entries(builtin.kinds).find(([, kindModel]) => kindModel === name)?.[0];
  const { group, version } = builtin;
  return {
    ...(model.description ? { description: model.description } : {}),
    type: 'object',
    ...(required.length > 0 ? { required } : {}),
    properties,
    ...DEFINITION_OVERLAY[short],
    ...(kind ? { 'x-kubernetes-group-version-kind': [{ group, kind, version }] } : {}),
  };
}

function schemaOf(
  type: string,
  format: string,
  owners: ReadonlyMap<string, BuiltinPackage>,
  path: string,
): JsonObject {
  const item = /^Array<(.+)>$/.exec(type)?.[1];
  if (item !== undefined) {
    const items = schemaOf(item, format, owners, path);
    return { type: 'array', items, 'x-kubernetes-list-type': 'atomic' };
  }
  const value = /^\{ \[key: string\]: (.+); \}$/.exec(type)?.[1];
  if (value !== undefined) {
    const isQuantity = QUANTITY_MAPS.has(path);
    const additionalProperties = isQuantity
      ? { $ref: `#/definitions/${QUANTITY}` }
      : schemaOf(value, format, owners, path);
    return { type: 'object', additionalProperties };
  }
  switch (type) {
    case 'string':
      return format === '' ? { type } : { type, format };
    case 'boolean':
      return { type };
    case 'number':
      return format === 'double' ? { type, format } : { type: 'integer', format };
    case 'Date':
    case 'V1MicroTime':
      return { type: 'string', format: 'date-time' };
    case 'IntOrString':
      return { type: 'string', format: 'int-or-string' };
    case 'object':
      return { type, 'x-kubernetes-preserve-unknown-fields': true };
    case 'any':
      return {};
    default:
      return { $ref: `#/definitions/${definitionName(type, owners)}` };
  }
}

function definitionName(model: string, owners: ReadonlyMap<string, BuiltinPackage>): string {
  const owner = owners.get(model);
  if (owner === undefined) throw new Error(`${model} is not a known model`);
  return `${owner.package}.${shortName(model)}`;
}

function quantityDefinition(): JsonObject {
  return {
    description: 'Quantity is a fixed-point number such as 500m, 2 or 1Gi.',
    oneOf: [{ type: 'string' }, { type: 'number' }],
  };
}

function unescapeText(text: string): string {
  return text.replace(/\\(['"\\])/g, '$1');
}

function fileText(builtin: BuiltinPackage, definitions: JsonObject): string {
  const lines = [
    '// Generated by generate.ts from the models of @kubernetes/client-node. Do not edit.',
    "import type { JsonObject } from '../../json.ts';",
    '',
  ];
  if (builtin.file === 'meta') {
    lines.push(`export const OBJECT_META = '${builtin.package}.ObjectMeta';`);
    lines.push(`export const LIST_META = '${builtin.package}.ListMeta';`);
    lines.push(`export const QUANTITY = '${QUANTITY}';`, '');
  }
  lines.push(`export const ${builtin.file}Definitions: JsonObject = `);
  return `${lines.join('\n')}${JSON.stringify(definitions, null, 1)};\n`;
}

async function main(check: boolean): Promise<void> {
  for (const [name, text] of await generateBuiltins()) {
    const file = new URL(name, import.meta.url);
    if (!check) writeFileSync(file, text);
    else if (readFileSync(file, 'utf8') !== text) {
      process.stderr.write(`${name} is stale: run node ${process.argv[1]}\n`);
      process.exitCode = 1;
    }
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(process.argv.includes('--check'));
}
