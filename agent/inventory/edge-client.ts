/**
 * One sync request to the edge. Every outcome is a value, since each asks for another next step;
 * only an abort by the caller is thrown.
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Agent, request } from 'undici';
import { withDeadline } from '#agent/runtime/deadline.ts';
import { parseJson, readText } from '#agent/runtime/response-body.ts';
import type { Clock } from '#shared/clock.ts';
import { errorBodySchema } from '#shared/wire/errors.ts';
import { type SyncResponse, syncResponseSchema } from '#shared/wire/sync.ts';

export type SyncOutcome =
  | { readonly kind: 'accepted'; readonly response: SyncResponse }
  /** The edge lacks what the request builds on: send everything. */
  | { readonly kind: 'resync-required' }
  /** An agent with a higher term speaks for this cluster. */
  | { readonly kind: 'stale-term' }
  /** Refused for a reason that trying again does not heal; `message` says what to do. */
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }
  /** No answer, or one that says "later"; whether the request was applied is unknown. */
  | { readonly kind: 'unavailable'; readonly message: string };

export interface EdgeClient {
  /** `body` is the JSON of a sync request. */
  sync(body: string, signal: AbortSignal): Promise<SyncOutcome>;
  close(): Promise<void>;
}

export interface EdgeClientDeps {
  readonly clock: Clock;
  /** Base URL of the edge. */
  readonly edgeUrl: string;
  readonly cluster: string;
  /** Read for each request, so that a rotated token file needs no restart. */
  readonly token: () => Promise<string>;
}

/** Below the heartbeat's interval, so that one lost request does not make the agent look stale. */
export const SYNC_TIMEOUT_MS = 10_000;
/** Smaller bodies are sent as they are. */
const GZIP_BYTES_MIN = 16 * 1024;
/** Leases and reports of a full cluster, by uid. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
const EXCERPT_LENGTH_MAX = 200;

const compress = promisify(gzip);

export function createEdgeClient(deps: EdgeClientDeps): EdgeClient {
  const dispatcher = new Agent({ connections: 2 });
  const url = `${deps.edgeUrl.replace(/\/+$/, '')}/v1/agents/${encodeURIComponent(deps.cluster)}/sync`;

  async function post(body: string, signal: AbortSignal): Promise<SyncOutcome> {
    const zipped = Buffer.byteLength(body) >= GZIP_BYTES_MIN;
    const response = await request(url, {
      method: 'POST',
      dispatcher,
      signal,
      headers: {
        authorization: `Bearer ${await deps.token()}`,
        'content-type': 'application/json',
        ...(zipped ? { 'content-encoding': 'gzip' } : {}),
      },
      body: zipped ? await compress(body) : body,
      headersTimeout: SYNC_TIMEOUT_MS,
      bodyTimeout: SYNC_TIMEOUT_MS,
    });
    const text = await readText(response.body, ANSWER_BYTES_MAX);
    return response.statusCode === 200 ? accepted(text) : refused(response.statusCode, text);
  }

  return {
    async sync(body, signal) {
      try {
        return await withDeadline(deps.clock, SYNC_TIMEOUT_MS, signal, (deadline) =>
          post(body, deadline),
        );
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        return { kind: 'unavailable', message: messageOf(error) };
      }
    },
    close: () => dispatcher.destroy(),
  };
}

function accepted(text: string): SyncOutcome {
  const parsed = syncResponseSchema.safeParse(parseJson(text));
  return parsed.success
    ? { kind: 'accepted', response: parsed.data }
    : { kind: 'unavailable', message: 'the answer is not that of an edge; check --edge-url' };
}

function refused(status: number, text: string): SyncOutcome {
  const parsed = errorBodySchema.safeParse(parseJson(text));
  const code = parsed.success ? parsed.data.error : '';
  const said = parsed.success
    ? `${code}: ${parsed.data.message} (request ${parsed.data.requestId})`
    : text.replaceAll(/\s+/g, ' ').trim().slice(0, EXCERPT_LENGTH_MAX);
  if (status === 409 && code === 'resync_required') return { kind: 'resync-required' };
  if (status === 409 && code === 'stale_term') return { kind: 'stale-term' };
  if (status >= 500 || status === 429 || status === 408) {
    return { kind: 'unavailable', message: `${status} ${said}` };
  }
  return { kind: 'refused', status, message: `${status} ${said}; ${advice(status)}` };
}

function advice(status: number): string {
  switch (status) {
    case 401:
      return 'the token (AGENT_TOKEN or --agent-token-file) is not one of the edge: AGENT_TOKEN there';
    case 403:
      return 'the token speaks for another cluster than --cluster-name';
    case 404:
      return '--edge-url does not point to the root of an edge';
    case 400:
    case 413:
    case 415:
      return 'the agent and the edge are of different versions';
    default:
      return 'see the log of the edge';
  }
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A refused connection to a name with several addresses comes as an error without a message.
  return error.message || ('code' in error ? String(error.code) : error.name);
}
