/**
 * A watch as a stream of JSON lines. A client that reads slower than things change is waited for,
 * but not for ever: it would hold the events that it has not read.
 */
import type { ServerResponse } from 'node:http';
import type { Clock } from '#shared/clock.ts';
import type { WatchEvent } from '../api/verbs/verbs.ts';
import { drained } from './drained.ts';
import { JSON_TYPE } from './negotiation.ts';
import type { Presenter } from './presentation.ts';
import { COMMON_HEADERS, statusOf } from './response.ts';

/** A client that takes nothing for so long is cut off; it watches again from where it was. */
const STALLED_CLIENT_MS = 30_000;

export interface WatchStreamOptions {
  readonly events: AsyncIterable<WatchEvent>;
  readonly presenter: Presenter;
  readonly clock: Clock;
  /** Aborted when the client leaves or the server closes. */
  readonly signal: AbortSignal;
}

/** Streams until the events end; resolves when nothing more will be written. */
export async function streamWatch(
  response: ServerResponse,
  { events, presenter, clock, signal }: WatchStreamOptions,
): Promise<void> {
  response.writeHead(200, { ...COMMON_HEADERS, 'content-type': JSON_TYPE });
  response.flushHeaders();
  try {
    for await (const event of events) {
      const isTaken = response.write(`${JSON.stringify(presenter.event(event))}\n`);
      if (!isTaken && !(await readsOn(response, clock, signal))) {
        response.destroy();
        return;
      }
    }
  } catch (error) {
    if (!signal.aborted) {
      response.write(`${JSON.stringify({ type: 'ERROR', object: statusOf(error).status })}\n`);
    }
  }
  response.end();
}

/** Whether the client has read on before it counts as stalled. */
async function readsOn(
  response: ServerResponse,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  const stalled = new AbortController();
  const timer = clock.setTimer(() => stalled.abort(), STALLED_CLIENT_MS);
  try {
    return await drained(response, AbortSignal.any([signal, stalled.signal]));
  } finally {
    timer.cancel();
  }
}
