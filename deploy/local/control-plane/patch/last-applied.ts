/**
 * The annotation of kubectl's client-side apply, under server-side apply: users may change from one
 * to the other and back, so kubectl takes over what it wrote there, and the annotation goes along.
 */
import { Buffer } from 'node:buffer';
import {
  canonicalJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  objectOf,
  own,
  setOwn,
} from '../json.ts';
import type { SchemaNode } from '../schema/schema-node.ts';
import { EMPTY_SET, type FieldSet, subtractSet } from './field-set.ts';
import { compareFields, fieldsOf } from './field-walk.ts';

/** The manager that kubectl is unless it is told another name. */
const KUBECTL = 'kubectl';
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
/** Annotations may not be longer: a configuration that is leaves none behind. */
const TEXT_BYTES_MAX = 256 * 1024;

interface Applied {
  readonly live?: JsonObject | undefined;
  readonly applied: JsonObject;
  readonly manager: string;
  readonly schema: SchemaNode;
}

/**
 * Fields that kubectl's client-side apply set to what they still are: its server-side apply takes
 * them over without a conflict.
 */
export function inheritedFields({ live, manager, schema }: Applied): FieldSet {
  const text = annotationOf(live);
  if (manager !== KUBECTL || live === undefined || text === undefined) return EMPTY_SET;
  const last = parseObject(text);
  if (last === undefined) return EMPTY_SET;
  return subtractSet(fieldsOf(last, schema), compareFields(last, live, schema).modified);
}

/**
 * The merged object with the annotation, if it has one, as kubectl would have written it: a later
 * client-side apply would take the old one for what was applied last.
 */
export function withLastApplied(object: JsonObject, { applied, manager }: Applied): JsonObject {
  if (manager !== KUBECTL || annotationOf(object) === undefined) return object;
  const text = `${canonicalJson(withAnnotation(applied, undefined))}\n`;
  return withAnnotation(object, Buffer.byteLength(text) > TEXT_BYTES_MAX ? undefined : text);
}

function annotationOf(object: JsonObject | undefined): string | undefined {
  const text = own(objectOf(objectOf(object?.metadata).annotations), LAST_APPLIED);
  return typeof text === 'string' ? text : undefined;
}

function withAnnotation(object: JsonObject, text: string | undefined): JsonObject {
  const metadata = objectOf(object.metadata);
  if (metadata.annotations === undefined) return object;
  const annotations = { ...objectOf(metadata.annotations) };
  if (text === undefined) delete annotations[LAST_APPLIED];
  else setOwn(annotations, LAST_APPLIED, text);
  return { ...object, metadata: { ...metadata, annotations } };
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value: JsonValue = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
