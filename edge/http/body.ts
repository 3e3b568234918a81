/**
 * Reads a JSON body within bounds, before anything parses it: content type, content encoding,
 * announced length, real length after decompression, UTF-8. An empty body stands for `{}`.
 */
import type { z } from 'zod';
import type { ErrorCode } from '#shared/wire/errors.ts';
import type { EdgeContext } from './context.ts';
import { ApiError, invalidField, invalidRequest } from './errors.ts';

export interface BodyLimits {
  readonly bytesMax: number;
  readonly acceptsGzip: boolean;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

/** The body as the schema takes it; `codeOf` chooses the code of a refusal by the schema. */
export async function readJson<Schema extends z.ZodType>(
  c: EdgeContext,
  schema: Schema,
  limits: BodyLimits,
  codeOf: (error: z.core.$ZodError) => ErrorCode = () => 'invalid_request',
): Promise<z.output<Schema>> {
  const parsed = schema.safeParse(parse(await readText(c.req.raw, limits)));
  if (parsed.success) return parsed.data;
  throw invalidRequest(parsed.error, codeOf(parsed.error));
}

function parse(text: string): unknown {
  if (text === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    throw invalidField('body', 'is not valid JSON');
  }
}

async function readText(request: Request, limits: BodyLimits): Promise<string> {
  const contentType = request.headers.get('content-type');
  if (contentType !== null) refuseUnlessJson(contentType);
  const isGzip = encodingOf(request, limits) === 'gzip';
  const length = request.headers.get('content-length');
  if (Number(length ?? 0) > limits.bytesMax) throw tooLarge(limits);
  if (request.body === null) return '';
  // A body is never longer than announced, so that it can be read at one go.
  const bytes =
    length === null || isGzip
      ? await readBytes(isGzip ? gunzip(request.body) : request.body, limits, isGzip)
      : await request.bytes().catch(unreadable);
  if (bytes.byteLength > limits.bytesMax) throw tooLarge(limits);
  if (bytes.byteLength > 0 && contentType === null) refuseUnlessJson('');
  try {
    return UTF8.decode(bytes);
  } catch {
    throw invalidField('body', 'is not valid UTF-8');
  }
}

function gunzip(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  return body.pipeThrough(new DecompressionStream('gzip'));
}

function unreadable(): never {
  throw invalidField('body', 'could not be read to its end');
}

function refuseUnlessJson(contentType: string): void {
  const [mediaType = ''] = contentType.split(';');
  if (mediaType.trim().toLowerCase() === 'application/json') return;
  throw new ApiError('unsupported_media_type', 'the body must be sent as application/json', {
    headers: { accept: 'application/json' },
  });
}

function encodingOf(request: Request, limits: BodyLimits): 'gzip' | 'identity' {
  const encoding = request.headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
  if (encoding === 'identity' || (encoding === 'gzip' && limits.acceptsGzip)) return encoding;
  const accepted = limits.acceptsGzip ? 'gzip' : 'identity';
  throw new ApiError('unsupported_media_type', `the body's content encoding may be ${accepted}`, {
    headers: { 'accept-encoding': accepted },
  });
}

async function readBytes(
  stream: ReadableStream<Uint8Array>,
  limits: BodyLimits,
  isGzip: boolean,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      return isGzip ? invalidGzip() : unreadable();
    });
    if (done) break;
    length += value.byteLength;
    if (length > limits.bytesMax) {
      await reader.cancel().catch(() => {});
      throw tooLarge(limits);
    }
    chunks.push(value);
  }
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}

function invalidGzip(): never {
  throw invalidField('body', 'is not valid gzip');
}

function tooLarge(limits: BodyLimits): ApiError {
  return new ApiError('payload_too_large', `the body may have ${limits.bytesMax} bytes at most`, {
    fields: { maxBytes: limits.bytesMax },
  });
}
