/**
 * Reads a JSON body within bounds, before anything parses it: content type, content encoding,
 * announced length, real length after decompression, UTF-8. An empty body stands for `{}`.
 */
import type { MiddlewareHandler } from 'hono';
import type { EdgeEnv } from './context.ts';
import { ApiError, invalidField } from './errors.ts';

export interface BodyLimits {
  readonly bytesMax: number;
  readonly acceptsGzip: boolean;
}

/** Puts in the request's place one whose body is known to be small, plain UTF-8 text. */
export function jsonBody(limits: BodyLimits): MiddlewareHandler<EdgeEnv> {
  return async (c, next) => {
    const text = await readText(c.req.raw, limits);
    const headers = new Headers(c.req.raw.headers);
    headers.delete('content-encoding');
    headers.delete('content-length');
    headers.set('content-type', 'application/json');
    c.req.raw = new Request(c.req.url, { method: c.req.method, headers, body: text || '{}' });
    await next();
  };
}

async function readText(request: Request, limits: BodyLimits): Promise<string> {
  const contentType = request.headers.get('content-type');
  if (contentType !== null) refuseUnlessJson(contentType);
  const isGzip = encodingOf(request, limits) === 'gzip';
  const announced = Number(request.headers.get('content-length') ?? 0);
  if (announced > limits.bytesMax) throw tooLarge(limits);
  if (request.body === null) return '';
  const plain = isGzip ? request.body.pipeThrough(new DecompressionStream('gzip')) : request.body;
  const bytes = await readBytes(plain, limits, isGzip);
  if (bytes.byteLength > 0 && contentType === null) refuseUnlessJson('');
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    throw invalidField('body', 'is not valid UTF-8');
  }
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
      throw invalidField('body', isGzip ? 'is not valid gzip' : 'could not be read to its end');
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

function tooLarge(limits: BodyLimits): ApiError {
  return new ApiError('payload_too_large', `the body may have ${limits.bytesMax} bytes at most`, {
    fields: { maxBytes: limits.bytesMax },
  });
}
