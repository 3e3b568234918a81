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
}

export async function send(
  method: string,
  path: string,
  options: RequestOptions = {},
): Promise<Answer> {
  const { token, json } = options;
  const body = json === undefined ? options.body : JSON.stringify(json);
  const response = await exports.default.fetch(`${BASE}${path}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  const parsed: unknown = isJson && text !== '' ? JSON.parse(text) : { text };
  return { status: response.status, headers: response.headers, body: toRecord(parsed) };
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
