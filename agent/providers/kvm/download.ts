/** Fetches an image over https, checked on the way: its length, its head and its checksum. */
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { type Dispatcher, request } from 'undici';
import type { KvmImage } from '../config-kvm.ts';
import { gib } from './capacity.ts';
import { QCOW2_HEAD_BYTES, readQcow2 } from './qcow2.ts';

/**
 * The image cannot be had. `lasting`: what was fetched is not what the configuration says, so that
 * fetching it again at once would be in vain.
 */
export class ImageError extends Error {
  override readonly name = 'ImageError';
  readonly lasting: boolean;

  constructor(
    message: string,
    options: { readonly lasting?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.lasting = options.lasting ?? false;
  }
}

const REDIRECTS_MAX = 5;
const HEADERS_TIMEOUT_MS = 30_000;
/** Longest silence within a download. */
const BODY_TIMEOUT_MS = 60_000;
const OK = 200;

export interface Download {
  /** What the server says of the length. */
  readonly bytes: number;
  /**
   * The bytes. Fails at their end when the checksum is not the right one, so that nobody who reads
   * to the end can take a wrong image for a right one.
   */
  readonly content: AsyncIterable<Uint8Array>;
}

/** `dispatcher` is undici's own unless told otherwise. Throws `ImageError`. */
export async function download(
  image: KvmImage,
  dispatcher: Dispatcher | undefined,
  signal: AbortSignal,
): Promise<Download> {
  const body = await follow(image, dispatcher, signal);
  const bytes = Number(body.headers['content-length'] ?? Number.NaN);
  if (!Number.isSafeInteger(bytes) || bytes <= 0) {
    body.body.destroy();
    throw new ImageError(`${shown(image.url)} does not tell the length of image ${image.name}`);
  }
  return { bytes, content: checked(image, body.body, bytes) };
}

interface Answer {
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: Readable;
}

/** Redirections are followed here, so that none leads away from https. */
async function follow(
  image: KvmImage,
  dispatcher: Dispatcher | undefined,
  signal: AbortSignal,
): Promise<Answer> {
  let url = new URL(image.url);
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const answer = await get(url, dispatcher, signal);
    if (answer.statusCode === OK) return answer;
    // Errors of what is thrown away are nobody's.
    answer.body.on('error', () => undefined).destroy();
    const { location } = answer.headers;
    if (answer.statusCode < 300 || answer.statusCode > 399 || typeof location !== 'string') {
      throw new ImageError(`${shown(url.href)} answers ${answer.statusCode}`);
    }
    const from = url;
    url = new URL(location, from);
    if (url.protocol !== 'https:') {
      throw new ImageError(`${shown(from.href)} leads to ${url.protocol}//, away from https`);
    }
  }
  throw new ImageError(`${shown(image.url)} leads from one address to the next`);
}

async function get(
  url: URL,
  dispatcher: Dispatcher | undefined,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  try {
    return await request(url, {
      signal,
      headersTimeout: HEADERS_TIMEOUT_MS,
      bodyTimeout: BODY_TIMEOUT_MS,
      // The checksum is that of the file.
      headers: { 'accept-encoding': 'identity' },
      ...(dispatcher === undefined ? {} : { dispatcher }),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new ImageError(`${shown(url.href)} cannot be reached: ${textOf(error)}`, {
      cause: error,
    });
  }
}

async function* checked(
  image: KvmImage,
  body: Readable,
  bytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const hash = createHash('sha256');
  let head = Buffer.alloc(0);
  let isHeadGood = false;
  let received = 0;
  try {
    for await (const chunk of pieces(image, body)) {
      received += chunk.length;
      hash.update(chunk);
      if (!isHeadGood) {
        head = Buffer.concat([head, chunk]);
        isHeadGood = head.length >= QCOW2_HEAD_BYTES;
        if (isHeadGood) assertQcow2(image, head);
      }
      yield chunk;
    }
    if (received < bytes) {
      throw new ImageError(`${shown(image.url)} was cut off after ${received} of ${bytes} bytes`);
    }
    if (!isHeadGood) assertQcow2(image, head);
    const digest = hash.digest('hex');
    if (digest === image.sha256) return;
    const message = `image ${image.name} has the SHA-256 ${digest}, not ${image.sha256}`;
    throw new ImageError(message, { lasting: true });
  } finally {
    body.destroy();
  }
}

async function* pieces(image: KvmImage, body: Readable): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* body;
  } catch (error) {
    const message = `${shown(image.url)} was cut off: ${textOf(error)}`;
    throw new ImageError(message, { cause: error });
  }
}

function assertQcow2(image: KvmImage, head: Buffer): void {
  const read = readQcow2(head);
  if ('problem' in read) {
    throw new ImageError(`image ${image.name}: ${read.problem}`, { lasting: true });
  }
}

/** A query may hold a signature, which is a secret. */
function shown(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** How far a download is; for a person. */
export function progressText(done: number, of: number): string {
  return `${gib(done)} of ${gib(of)}`;
}
