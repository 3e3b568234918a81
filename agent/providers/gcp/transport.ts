/**
 * Between the official client and the network: credentials come from below, and here each request
 * is seen once more. That gives the wire log, and sends `returnPartialSuccess`, which the client
 * drops: the requests of its v1 have no such field, though the API does.
 */
import type { Clock } from '#shared/clock.ts';
import type { Exchange } from './wire-log.ts';

/** The part of an auth client (google-auth-library) that the official client uses over REST. */
export interface Transport {
  readonly universeDomain?: string;
  getRequestHeaders(url?: string | URL): Promise<Headers>;
  fetch(url: string, init: RequestParts): Promise<Response>;
}

export interface RequestParts {
  readonly method?: string;
  readonly body?: unknown;
}

export interface TransportOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Told of each exchange; absent: none is looked at. */
  readonly wire?: (exchange: Exchange) => void;
  /** Whether answers are read for the wire log. */
  readonly readAnswers: boolean;
}

const AGGREGATED_INSTANCES = /\/aggregated\/instances$/;

/** The same as `inner`, seen through. */
export function createTransport(inner: Transport, options: TransportOptions): Transport {
  const { clock, wire, readAnswers } = options;

  async function fetch(given: string, init: RequestParts): Promise<Response> {
    const url = withPartialSuccess(given);
    if (wire === undefined) return inner.fetch(url.href, init);
    const startedMs = clock.monotonicMs();
    const tell = (more: Pick<Exchange, 'status' | 'answer' | 'error'>) =>
      wire({
        method: init.method ?? 'GET',
        target: url.pathname + url.search,
        durationMs: Math.round(clock.monotonicMs() - startedMs),
        request: typeof init.body === 'string' ? init.body : '',
        ...more,
      });
    try {
      const response = await inner.fetch(url.href, init);
      const { status } = response;
      tell({ status, answer: readAnswers ? await textOf(response) : undefined });
      return response;
    } catch (error) {
      const { status, message } = describe(error);
      tell({ status, answer: undefined, error: message });
      throw error;
    }
  }

  return {
    ...(inner.universeDomain === undefined ? {} : { universeDomain: inner.universeDomain }),
    getRequestHeaders: (url) => inner.getRequestHeaders(url),
    fetch,
  };
}

/** Also tidies the empty query that the client leaves at the end of each URL. */
export function withPartialSuccess(given: string): URL {
  const url = new URL(given);
  if (AGGREGATED_INSTANCES.test(url.pathname)) {
    url.searchParams.set('returnPartialSuccess', 'true');
  }
  return url;
}

/** A copy is read: the client reads the answer itself. */
async function textOf(response: Response): Promise<string> {
  try {
    return await response.clone().text();
  } catch {
    return '';
  }
}

/** Of an error of gaxios: without its configuration, which holds the request. */
function describe(error: unknown): { status: number | undefined; message: string } {
  if (!(error instanceof Error)) return { status: undefined, message: String(error) };
  const status = 'status' in error && typeof error.status === 'number' ? error.status : undefined;
  return { status, message: status === undefined ? error.message : `HTTP ${status}` };
}
