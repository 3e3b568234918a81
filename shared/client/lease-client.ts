/** A typed client of the lease API, for crawlers and for this project's own tools. */
import { z } from 'zod';
import { type Clock, systemClock } from '../clock.ts';
import { errorBodySchema } from '../wire/errors.ts';
import {
  type AcquireRequest,
  type Lease,
  leaseSchema,
  type ProxyList,
  proxyListSchema,
  type ReportRequest,
  type Stats,
  statsSchema,
} from '../wire/lease.ts';

/** Longest time of one call, when the caller says nothing else. */
export const REQUEST_TIMEOUT_MS = 10_000;
/** Pause after a lost connection, in which an edge that restarts may come back. */
const LOST_PAUSE_MS = 250;

export interface LeaseClientOptions {
  /** Where the edge is, as `https://edge.example.com`. */
  readonly baseUrl: string;
  /** A crawler's token. */
  readonly token: string;
  /** Stands in for the platform's `fetch`. */
  readonly fetch?: typeof fetch;
  /** Longest time of one call, beyond the one that an `acquire` asks to wait. */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
}

export interface ProxyFilter {
  /** Attributes that a proxy must have. */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly healthy?: boolean;
  readonly limit?: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string;
}

/** All methods reject with a `LeaseApiError` when the edge refuses, and else as `fetch` does. */
export interface LeaseClient {
  /**
   * Is sent once more when the answer was lost or was "later" (503): the idempotency key, one of
   * this call's own unless given, sees to it that no second lease comes of that.
   */
  acquire(request?: AcquireRequest, signal?: AbortSignal, idempotencyKey?: string): Promise<Lease>;
  get(leaseID: string, signal?: AbortSignal): Promise<Lease>;
  renew(leaseID: string, ttlSeconds?: number, signal?: AbortSignal): Promise<Lease>;
  release(leaseID: string, signal?: AbortSignal): Promise<void>;
  report(leaseID: string, report: ReportRequest, signal?: AbortSignal): Promise<void>;
  proxies(filter?: ProxyFilter, signal?: AbortSignal): Promise<ProxyList>;
  stats(signal?: AbortSignal): Promise<Stats>;
}

/** A refusal by the edge. `body` has the further fields, such as the counts of `no_match`. */
export class LeaseApiError extends Error {
  readonly status: number;
  /** The contract's code; `http_<status>` when something else than an edge answered. */
  readonly code: string;
  readonly body: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, message: string, body: Record<string, unknown>) {
    super(`${code}: ${message}`);
    this.name = 'LeaseApiError';
    this.status = status;
    this.code = code;
    this.body = body;
  }
}

export function createLeaseClient(options: LeaseClientOptions): LeaseClient {
  const { token, timeoutMs = REQUEST_TIMEOUT_MS, clock = systemClock } = options;
  const baseUrl = options.baseUrl.replace(/\/+$/, '');
  const send = options.fetch ?? fetch;

  function within(signal: AbortSignal | undefined, moreMs = 0): AbortSignal {
    const deadline = AbortSignal.timeout(timeoutMs + moreMs);
    return signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  }

  async function call(
    method: string,
    path: string,
    body: unknown,
    signal: AbortSignal,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const response = await send(`${baseUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
    });
    if (!response.ok) throw await toError(response);
    return response;
  }

  const lease = async (response: Response) => leaseSchema.parse(await response.json());

  return {
    async acquire(request = {}, signal, idempotencyKey = crypto.randomUUID()) {
      const whole = within(signal, (request.waitSeconds ?? 0) * 1000);
      const headers = { 'idempotency-key': idempotencyKey };
      const once = async () => lease(await call('POST', '/v1/leases', request, whole, headers));
      try {
        return await once();
      } catch (error) {
        const pauseMs = retryPauseMs(error);
        if (pauseMs === undefined || whole.aborted) throw error;
        await clock.sleep(pauseMs, whole);
        return await once();
      }
    },
    async get(leaseID, signal) {
      return lease(await call('GET', leasePath(leaseID), undefined, within(signal)));
    },
    async renew(leaseID, ttlSeconds, signal) {
      const request = ttlSeconds === undefined ? {} : { ttlSeconds };
      return lease(await call('POST', `${leasePath(leaseID)}/renew`, request, within(signal)));
    },
    async release(leaseID, signal) {
      await call('DELETE', leasePath(leaseID), undefined, within(signal));
    },
    async report(leaseID, report, signal) {
      await call('POST', `${leasePath(leaseID)}/report`, report, within(signal));
    },
    async proxies(filter = {}, signal) {
      const path = `/v1/proxies${queryOf(filter)}`;
      const response = await call('GET', path, undefined, within(signal));
      return proxyListSchema.parse(await response.json());
    },
    async stats(signal) {
      const response = await call('GET', '/v1/stats', undefined, within(signal));
      return statsSchema.parse(await response.json());
    },
  };
}

/** How long to wait before the second try; undefined when that would not help. */
function retryPauseMs(error: unknown): number | undefined {
  // What `fetch` rejects with when there is no connection, or no more.
  if (error instanceof TypeError) return LOST_PAUSE_MS;
  if (!(error instanceof LeaseApiError) || error.status !== 503) return undefined;
  const { retryAfterSeconds } = error.body;
  return typeof retryAfterSeconds === 'number' ? retryAfterSeconds * 1000 : undefined;
}

function leasePath(leaseID: string): string {
  return `/v1/leases/${encodeURIComponent(leaseID)}`;
}

function queryOf(filter: ProxyFilter): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(filter.attributes ?? {})) {
    query.set(`attr.${key}`, value);
  }
  if (filter.healthy !== undefined) query.set('healthy', String(filter.healthy));
  if (filter.limit !== undefined) query.set('limit', String(filter.limit));
  if (filter.cursor !== undefined) query.set('cursor', filter.cursor);
  return query.size === 0 ? '' : `?${query}`;
}

const refusalSchema = errorBodySchema.or(
  z.unknown().transform(() => ({ error: undefined, message: undefined })),
);

async function toError(response: Response): Promise<LeaseApiError> {
  const json: unknown = await response.json().catch(() => undefined);
  const { error, message, ...rest } = refusalSchema.parse(json);
  return new LeaseApiError(
    response.status,
    error ?? `http_${response.status}`,
    message ?? 'the answer is not that of an edge; check the base URL',
    { ...rest },
  );
}
