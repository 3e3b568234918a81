/** Waiting for a client to read what was written, for as long as there is one. */
import type { ServerResponse } from 'node:http';

/** Resolves when more can be written; false when nobody will read it any more. */
export function drained(response: ServerResponse, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isDrained: boolean) => {
      response.off('drain', onDrain);
      response.off('close', onGone);
      signal.removeEventListener('abort', onGone);
      resolve(isDrained);
    };
    const onDrain = () => settle(true);
    const onGone = () => settle(false);
    response.once('drain', onDrain);
    response.once('close', onGone);
    signal.addEventListener('abort', onGone, { once: true });
    if (signal.aborted || response.destroyed) onGone();
  });
}
