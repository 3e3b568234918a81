/** Requests to the edge, each of which ends in an answer, unknown, or before it reached anybody. */
import { Pool } from 'undici';

/** Far above what a waiting request takes; one that comes here is found as lost. */
const ANSWER_MS_MAX = 60_000;
/** The other side closes idle connections later than this: no request meets a closed one. */
const IDLE_MS = 2_000;

export interface Answered {
  readonly kind: 'answered';
  readonly status: number;
  readonly hasRetryAfter: boolean;
  /** Parsed; undefined for none. */
  readonly body: unknown;
}

/** `unreached`: nobody listened, so that nothing can have happened. */
export type Reply = Answered | { readonly kind: 'lost' } | { readonly kind: 'unreached' };

export interface Request {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Connection {
  send(request: Request): Promise<Reply>;
  close(): Promise<void>;
}

/** Connections to one address, also across restarts of what listens there. */
export function connect(url: string): Connection {
  // One request at a time on each connection: nothing is ever sent a second time by itself.
  const pool = new Pool(url, {
    pipelining: 1,
    keepAliveTimeout: IDLE_MS,
    headersTimeout: ANSWER_MS_MAX,
    bodyTimeout: ANSWER_MS_MAX,
  });
  return {
    async send({ method, path, headers, body, signal }) {
      try {
        const response = await pool.request({
          method,
          path,
          headers: { ...headers, ...(body === undefined ? {} : JSON_TYPE) },
          body: body ?? null,
          signal: signal ?? null,
        });
        const text = await response.body.text();
        return {
          kind: 'answered',
          status: response.statusCode,
          hasRetryAfter: response.headers['retry-after'] !== undefined,
          body: parsed(text),
        };
      } catch (error) {
        return { kind: codeOf(error) === 'ECONNREFUSED' ? 'unreached' : 'lost' };
      }
    },
    close: () => pool.destroy(),
  };
}

const JSON_TYPE = { 'content-type': 'application/json' };

/** What is no JSON stays text, for the schema to refuse. */
function parsed(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
