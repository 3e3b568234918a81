/** What keeps a configuration from being applied: fields that are not declared, items without keys. */
import { isJsonObject, type JsonValue } from '../json.ts';
import type { SchemaNode } from '../schema/schema-node.ts';
import { fieldSet, LEAF_SET, listPaths } from './field-set.ts';
import { itemElement } from './field-walk.ts';

/** Problems with their path, such as `.spec.foo: field not declared in schema`. */
export function typedProblems(value: JsonValue, node: SchemaNode, path = ''): string[] {
  if (Array.isArray(value)) return listProblems(value, node, path);
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const childPath = `${path}.${key}`;
    const child = node.properties.get(key) ?? node.additional;
    if (child !== undefined) return typedProblems(item, child, childPath);
    return node.preserveUnknown || node.embeddedResource
      ? []
      : [`${childPath}: field not declared in schema`];
  });
}

function listProblems(list: readonly JsonValue[], node: SchemaNode, path: string): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const [index, item] of list.entries()) {
    if (node.listType !== 'atomic') {
      const missing = missingKey(item, node);
      const element = itemElement(item, node);
      if (missing !== undefined) {
        problems.push(
          `${path}: element ${index}: associative list with keys has an element that omits key ` +
            `field ${JSON.stringify(missing)} (and doesn't have default value)`,
        );
      } else if (seen.has(element)) {
        problems.push(`${path}: duplicate entries for key ${renderKey(element)}`);
      }
      seen.add(element);
    }
    if (node.items !== undefined) {
      problems.push(...typedProblems(item, node.items, `${path}[${index}]`));
    }
  }
  return problems;
}

function missingKey(item: JsonValue, node: SchemaNode): string | undefined {
  if (node.listType !== 'map') return undefined;
  return node.listKeys.find((key) => {
    if (isJsonObject(item) && Object.hasOwn(item, key)) return false;
    return node.items?.properties.get(key)?.default === undefined;
  });
}

function renderKey(element: string): string {
  return listPaths(fieldSet(false, [[element, LEAF_SET]])).join('');
}
