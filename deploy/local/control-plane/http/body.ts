/** Request bodies: bounded, and in the form that their media type says. */
import type { IncomingMessage } from 'node:http';
import { parse as parseYaml } from 'yaml';
import { badRequest, tooLarge, unsupportedMediaType } from '../api/status-error.ts';
import { PATCH_MEDIA_TYPES, type PatchType } from '../api/verbs/patch-types.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { JSON_TYPE, YAML_TYPE } from './negotiation.ts';
import { decodeProtobuf, PROTOBUF_TYPE, ProtobufError } from './protobuf/decode.ts';

/** What the real API server takes. */
export const BODY_BYTES_MAX = 3 * 1024 * 1024;

const PATCH_TYPES: readonly PatchType[] = ['json', 'merge', 'strategic', 'apply'];

/** Reads a body to its end; throws 413 as soon as it is known to be too large. */
export async function readBody(
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > BODY_BYTES_MAX) {
    throw tooLarge(BODY_BYTES_MAX);
  }
  const stop = () => request.destroy();
  signal.addEventListener('abort', stop, { once: true });
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      if (!Buffer.isBuffer(chunk)) continue;
      length += chunk.length;
      if (length > BODY_BYTES_MAX) throw tooLarge(BODY_BYTES_MAX);
      chunks.push(chunk);
    }
  } finally {
    signal.removeEventListener('abort', stop);
  }
  return length === 0 ? undefined : Buffer.concat(chunks);
}

/** The object in a body of POST or PUT. */
export function parseObject(body: Buffer | undefined, contentType: string): JsonObject {
  const value = parseBody(body ?? Buffer.alloc(0), contentType);
  if (isJsonObject(value)) return value;
  throw badRequest('the body of the request must be an object');
}

/** The options that a DELETE may carry. */
export function parseOptionalObject(body: Buffer | undefined, contentType: string): JsonObject {
  return body === undefined ? {} : parseObject(body, contentType);
}

function parseBody(body: Buffer, contentType: string): JsonValue {
  switch (mediaType(contentType) || JSON_TYPE) {
    case JSON_TYPE:
      return parseJson(body.toString('utf8'));
    case YAML_TYPE:
      return parseYamlText(body.toString('utf8'));
    case PROTOBUF_TYPE:
      return parseProtobuf(body);
    default:
      throw unsupportedMediaType([JSON_TYPE, YAML_TYPE]);
  }
}

/** The kind of patch and what it says. */
export function parsePatch(
  body: Buffer | undefined,
  contentType: string,
): { readonly patchType: PatchType; readonly patch: JsonValue } {
  const type = mediaType(contentType);
  const patchType = PATCH_TYPES.find((one) => PATCH_MEDIA_TYPES[one] === type);
  if (patchType === undefined) throw unsupportedMediaType(Object.values(PATCH_MEDIA_TYPES));
  const text = body?.toString('utf8') ?? '';
  return { patchType, patch: patchType === 'apply' ? parseYamlText(text) : parseJson(text) };
}

function mediaType(contentType: string): string {
  return (contentType.split(';')[0] ?? '').trim().toLowerCase();
}

function parseJson(text: string): JsonValue {
  try {
    const value: JsonValue = JSON.parse(text);
    return value;
  } catch (error) {
    throw badRequest(`the body of the request is not JSON: ${reasonOf(error)}`);
  }
}

function parseProtobuf(body: Buffer): JsonValue {
  let object: JsonObject | undefined;
  try {
    object = decodeProtobuf(body);
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error;
    throw badRequest(`the body of the request is not protobuf: ${error.message}`);
  }
  if (object === undefined) throw unsupportedMediaType([JSON_TYPE, YAML_TYPE]);
  return object;
}

/** JSON is YAML too, but reads faster as JSON. */
function parseYamlText(text: string): JsonValue {
  if (text.trimStart().startsWith('{')) {
    try {
      const value: JsonValue = JSON.parse(text);
      return value;
    } catch {
      // A flow mapping of YAML starts the same.
    }
  }
  try {
    const value: JsonValue = parseYaml(text, { prettyErrors: false });
    return value;
  } catch (error) {
    throw badRequest(`the body of the request is not YAML: ${reasonOf(error)}`);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
