/**
 * The answer to a request that has waited. Its crawler may have hung up meanwhile without anybody
 * having noticed: over plain TCP that shows only when something is sent. So the first byte goes
 * ahead, and when that finds nobody the lease is given back.
 */
import type { Clock } from '#shared/clock.ts';

/** For the word that there is nobody to come back, on a near network. */
const LISTEN_MS = 10;

/** The body of an answer; calls `onLost` when its reader went away before it had all of it. */
export function lateBody(
  text: string,
  clock: Clock,
  signal: AbortSignal,
  onLost: () => Promise<void>,
): { readonly body: ReadableStream; readonly sent: Promise<void> } {
  const bytes = new TextEncoder().encode(text);
  const { readable, writable } = new FixedLengthStream(bytes.byteLength);
  const send = async () => {
    const writer = writable.getWriter();
    try {
      await writer.write(bytes.subarray(0, 1));
      await clock.sleep(LISTEN_MS, signal);
      await writer.write(bytes.subarray(1));
      await writer.close();
    } catch {
      await onLost();
    }
  };
  return { body: readable, sent: send() };
}
