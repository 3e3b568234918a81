/** Requests to the whole Worker, as crawlers and agents send them. */
import { exports } from 'cloudflare:workers';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { inventoryEntry } from './inventory-entry.ts';

export const CRAWLER = 'crawler-one-secret';
export const AGENT = 'agent-alpha-secret';
const BASE = 'https://edge.example';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body; undefined when it is empty. */
  readonly body: Record<string, unknown>;
}

export interface RequestOptions {
  readonly token?: string | undefined;
  readonly headers?: Record<string, string>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as it is. */
  readonly body?: BodyInit;
  readonly signal?: AbortSignal;
}

export type Send = (method: string, path: string, options?: RequestOptions) => Promise<Answer>;

/** The Worker of `wrangler.toml`. */
export const send = senderTo((request) => exports.default.fetch(request));

export function senderTo(fetch: (request: Request) => Response | Promise<Response>): Send {
  return async (method, path, options = {}) => {
    const { token, json, signal } = options;
    const body = json === undefined ? options.body : JSON.stringify(json);
    const request = new Request(`${BASE}${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
    });
    const response = await fetch(request);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    const parsed: unknown = isJson && text !== '' ? JSON.parse(text) : { text };
    return { status: response.status, headers: response.headers, body: toRecord(parsed) };
  };
}

/** As a crawler. */
export function crawl(method: string, path: string, json?: unknown): Promise<Answer> {
  return send(method, path, { token: CRAWLER, ...(json === undefined ? {} : { json }) });
}

export async function lease(json: unknown = {}): Promise<Answer & { id: string }> {
  const answer = await crawl('POST', '/v1/leases', json);
  return { ...answer, id: String(answer.body.leaseID) };
}

/** As the agent of cluster `alpha`: a full sync of a session of its own. */
export function syncFull(...upserts: InventoryEntry[]): Promise<Answer> {
  const session = crypto.randomUUID();
  return sync({ term: 1, session, seq: 1, kind: 'full', upserts });
}

export function sync(json: unknown): Promise<Answer> {
  return send('POST', '/v1/agents/alpha/sync', { token: AGENT, json });
}

export const entry = (name: string, overrides: Partial<InventoryEntry> = {}) =>
  inventoryEntry(name, { maxLeases: 10, ...overrides });

function toRecord(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new Error(`not an object: ${value}`);
  return { ...value };
}
