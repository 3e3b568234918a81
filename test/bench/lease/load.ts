/**
 * Crawlers, in a process of their own so that what they use is not counted: each has one
 * connection, on which it acquires a lease and releases it, again and again. The parent asks by
 * IPC, one order at a time; see `load-process.ts`.
 */
import { Client } from 'undici';
import { systemClock as clock } from '#shared/clock.ts';
import { bearer, CRAWLER_TOKEN } from '#test/workerd/tokens.ts';
import { mean, percentile } from '../statistics.ts';
import { HOLD_TTL_SECONDS } from './fleet.ts';

/** Hosts that crawlers name; every second request names none. */
const TARGETS = Array.from({ length: 20 }, (_, index) => `shop-${index}.example`);
const TTL_SECONDS = 300;
const targetOf = (turn: number) =>
  turn % 2 === 0 ? TARGETS[(turn / 2) % TARGETS.length] : undefined;

/** Connections on which leases are acquired that are kept. */
const HOLDERS = 32;
/** Enough to see what is wrong. */
const FAULTS_MAX = 20;

export type Order =
  | { readonly kind: 'hold'; readonly url: string; readonly leases: number }
  | {
      readonly kind: 'run';
      readonly url: string;
      readonly connections: number;
      readonly warmUpMs: number;
      readonly windowMs: number;
    };

export interface Latency {
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** What happened within the window. */
export interface LoadResult {
  readonly windowMs: number;
  readonly requests: number;
  readonly pairs: number;
  readonly acquire: Latency;
  readonly release: Latency;
}

export type Message =
  /** The window opens. */
  | { readonly kind: 'begin' }
  | { readonly kind: 'end'; readonly result: LoadResult }
  | { readonly kind: 'held' }
  | { readonly kind: 'failed'; readonly faults: readonly string[] };

interface Answer {
  readonly status: number;
  readonly text: string;
}

const HEADERS = { ...bearer(CRAWLER_TOKEN), 'content-type': 'application/json' };

process.on('message', (order: Order) => {
  const work = order.kind === 'hold' ? hold(order) : run(order);
  work.then(tell, (error: unknown) => tell({ kind: 'failed', faults: [String(error)] }));
});

function tell(message: Message): void {
  process.send?.(message);
}

async function hold({ url, leases }: Order & { kind: 'hold' }): Promise<Message> {
  const faults: string[] = [];
  let left = leases;
  await withClients(url, HOLDERS, async (client) => {
    while (left > 0 && faults.length === 0) {
      left--;
      const body = JSON.stringify({ ttlSeconds: HOLD_TTL_SECONDS, target: targetOf(left) });
      const answer = await send(client, 'POST', '/v1/leases', body);
      if (answer.status !== 201) faults.push(`${answer.status} ${answer.text}`);
    }
  });
  return faults.length > 0 ? { kind: 'failed', faults } : { kind: 'held' };
}

async function run(order: Order & { kind: 'run' }): Promise<Message> {
  const acquired: number[] = [];
  const released: number[] = [];
  const faults: string[] = [];
  let state: 'warm-up' | 'window' | 'over' = 'warm-up';
  /** Sends, and notes how long it took when the answer falls into the window. */
  const timed = async (client: Client, method: 'POST' | 'DELETE', path: string, body?: string) => {
    const startMs = clock.monotonicMs();
    const answer = await send(client, method, path, body);
    const wanted = method === 'POST' ? 201 : 204;
    if (answer.status !== wanted) faults.push(`${method}: ${answer.status} ${answer.text}`);
    else if (state === 'window') {
      (method === 'POST' ? acquired : released).push(clock.monotonicMs() - startMs);
    }
    return answer;
  };
  const crawling = withClients(order.url, order.connections, async (client, number) => {
    for (let turn = number; state !== 'over' && faults.length < FAULTS_MAX; turn++) {
      const body = JSON.stringify({ ttlSeconds: TTL_SECONDS, target: targetOf(turn) });
      const { status, text } = await timed(client, 'POST', '/v1/leases', body);
      if (status !== 201) continue;
      const { leaseID }: { readonly leaseID?: unknown } = JSON.parse(text);
      await timed(client, 'DELETE', `/v1/leases/${String(leaseID)}`);
    }
  });
  // So that a failure of a connection ends the run at once.
  await Promise.race([clock.sleep(order.warmUpMs), crawling]);
  tell({ kind: 'begin' });
  state = 'window';
  const startMs = clock.monotonicMs();
  await Promise.race([clock.sleep(order.windowMs), crawling]);
  const windowMs = clock.monotonicMs() - startMs;
  state = 'over';
  const result = resultOf(acquired, released, windowMs);
  await crawling;
  return faults.length > 0 ? { kind: 'failed', faults } : { kind: 'end', result };
}

function resultOf(acquired: number[], released: number[], windowMs: number): LoadResult {
  const requests = acquired.length + released.length;
  return {
    windowMs,
    requests,
    pairs: requests / 2,
    acquire: latencyOf(acquired),
    release: latencyOf(released),
  };
}

function latencyOf(values: readonly number[]): Latency {
  if (values.length === 0) return { meanMs: Infinity, p50Ms: Infinity, p99Ms: Infinity };
  return {
    meanMs: mean(values),
    p50Ms: percentile(values, 0.5),
    p99Ms: percentile(values, 0.99),
  };
}

async function withClients(
  url: string,
  count: number,
  work: (client: Client, number: number) => Promise<void>,
): Promise<void> {
  const clients = Array.from({ length: count }, () => new Client(url, { pipelining: 1 }));
  try {
    await Promise.all(clients.map(work));
  } finally {
    await Promise.all(clients.map((client) => client.destroy()));
  }
}

/** By undici's lowest layer, since the crawlers share two cores with the servers. */
function send(
  client: Client,
  method: 'POST' | 'DELETE',
  path: string,
  body?: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let text = '';
    client.dispatch(
      { method, path, headers: HEADERS, ...(body === undefined ? {} : { body }) },
      {
        onRequestStart() {},
        onResponseStart(_controller, code) {
          status = code;
        },
        onResponseData(_controller, chunk) {
          text += chunk.toString('latin1');
        },
        onResponseEnd: () => resolve({ status, text }),
        onResponseError: (_controller, error) => reject(error),
      },
    );
  });
}
