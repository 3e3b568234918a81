/** Bytes into a volume, no faster than libvirt takes them. */
import type { Connection, OutStream, Timers } from './connection.ts';
import { LibvirtUploadError } from './errors.ts';
import { PROCEDURES, type Volume } from './procedures.ts';
import { STREAM_CHUNK_BYTES_MAX } from './wire.ts';

/** What an upload reads; `return` of its iterator is called when it is given up. */
export type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

export interface UploadOptions {
  /**
   * Bytes that the source must have, exactly. libvirt itself answers OK to fewer. Absent: as many
   * as come.
   */
  readonly length?: number;
  /** Where in the volume the first byte goes; 0 unless told otherwise. */
  readonly offset?: number;
  /**
   * Milliseconds in which libvirt must take something, or confirm the end: writing the volume to
   * disk falls into that. 5 minutes unless told otherwise.
   */
  readonly stallMsMax?: number;
}

const STALL_MS_MAX = 300_000;
/** In the protocol, that the number of bytes is open. */
const UNLIMITED = 0;

/**
 * Resolves with the number of bytes when libvirt has confirmed them. Whatever goes wrong, the
 * stream is ended on the wire, and the source is told that nothing more is read.
 */
export async function upload(
  connection: Connection,
  volume: Volume,
  source: Bytes,
  options: UploadOptions,
  signal: AbortSignal,
): Promise<number> {
  const given = { volume, offset: options.offset ?? 0, length: options.length ?? UNLIMITED };
  const asked = { ...given, flags: 0 };
  const stream = await connection.openStream(PROCEDURES.volumeUpload, asked, signal);
  const stopper = createStopper(stream, signal);
  const iterator = iteratorOf(source);
  try {
    const sent = await pump(iterator, stream, stopper, connection.timers, options);
    if (options.length !== undefined && sent < options.length) {
      const message = `the source ended after ${sent} of ${options.length} bytes`;
      throw new LibvirtUploadError('short', sent, message);
    }
    stream.finish();
    const stall = watchStall(connection.timers, stopper, options, sent);
    const refusal = await stopper.until(stream.ended).finally(() => stall.cancel());
    if (refusal !== undefined) throw refusal;
    return sent;
  } catch (error) {
    stream.abort();
    // Not awaited: a source that hangs must not hold up who gave up on it.
    Promise.resolve(iterator.return?.()).catch(() => undefined);
    throw error;
  } finally {
    stopper.dispose();
  }
}

async function pump(
  iterator: AsyncIterator<Uint8Array> | Iterator<Uint8Array>,
  stream: OutStream,
  stopper: Stopper,
  timers: Timers,
  options: UploadOptions,
): Promise<number> {
  let sent = 0;
  for (;;) {
    const next = await stopper.until(Promise.resolve(iterator.next()));
    if (next.done === true) return sent;
    if (sent + next.value.length > (options.length ?? Number.POSITIVE_INFINITY)) {
      const message = `the source has more than the ${options.length} bytes it should have`;
      throw new LibvirtUploadError('long', sent, message);
    }
    for (let start = 0; start < next.value.length; start += STREAM_CHUNK_BYTES_MAX) {
      const chunk = next.value.subarray(start, start + STREAM_CHUNK_BYTES_MAX);
      sent += chunk.length;
      if (stream.write(chunk)) continue;
      const stall = watchStall(timers, stopper, options, sent);
      await stopper.until(stream.drained()).finally(() => stall.cancel());
    }
  }
}

function watchStall(timers: Timers, stopper: Stopper, options: UploadOptions, sent: number) {
  const stallMs = options.stallMsMax ?? STALL_MS_MAX;
  const message = `libvirt took nothing for ${stallMs} ms, after ${sent} bytes`;
  return timers.setTimer(
    () => stopper.stop(new LibvirtUploadError('stalled', sent, message)),
    stallMs,
  );
}

/** Ends whatever is waited for when the upload cannot go on. */
interface Stopper {
  stop(reason: unknown): void;
  /** As `promise`, unless stopped before. One at a time; a `Promise.race` would keep them all. */
  until<T>(promise: Promise<T>): Promise<T>;
  dispose(): void;
}

function createStopper(stream: OutStream, signal: AbortSignal): Stopper {
  let stopped: { readonly reason: unknown } | undefined;
  let reject: (reason: unknown) => void = () => undefined;
  const stop = (reason: unknown) => {
    stopped ??= { reason };
    reject(stopped.reason);
  };
  const onAbort = () => stop(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  void stream.ended.then((error) => {
    if (error !== undefined) stop(error);
  });
  return {
    stop,
    until: (promise) =>
      new Promise((resolve, onStop) => {
        reject = onStop;
        promise.then(resolve, onStop);
        if (stopped !== undefined) onStop(stopped.reason);
      }),
    dispose: () => signal.removeEventListener('abort', onAbort),
  };
}

function iteratorOf(source: Bytes): AsyncIterator<Uint8Array> | Iterator<Uint8Array> {
  return Symbol.asyncIterator in source
    ? source[Symbol.asyncIterator]()
    : source[Symbol.iterator]();
}
