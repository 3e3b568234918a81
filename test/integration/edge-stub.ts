/**
 * As much of an edge as an agent needs: it takes syncs, fences them by their term as the real one
 * does, and says from where a caller comes. For tests that start agents by the hundred.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createGunzip } from 'node:zlib';
import { systemClock } from '#shared/clock.ts';
import { type SyncRequest, syncRequestSchema } from '#shared/wire/sync.ts';

export interface EdgeStub {
  readonly url: string;
  readonly syncs: number;
  /** Syncs of a leader whose successor had spoken already. */
  readonly stale: number;
  /** Terms that more than one agent spoke in: an election without a winner. */
  readonly sharedTerms: ReadonlySet<number>;
  close(): Promise<void>;
}

export async function startEdgeStub(): Promise<EdgeStub> {
  const sessions = new Map<number, string>();
  const sharedTerms = new Set<number>();
  let syncs = 0;
  let stale = 0;

  function answer({ term, session, seq }: SyncRequest): [number, object] {
    syncs++;
    const highest = Math.max(0, ...sessions.keys());
    if (term < highest) {
      stale++;
      const message = `term ${highest} has begun`;
      return [409, { error: 'stale_term', message, requestId: `sync-${syncs}` }];
    }
    const known = sessions.get(term);
    if (known === undefined) sessions.set(term, session);
    else if (known !== session) sharedTerms.add(term);
    const serverTime = systemClock.now();
    return [200, { acceptedSeq: seq, serverTime, leases: {}, reports: {}, counters: {} }];
  }

  const server = createServer(async (incoming, outgoing) => {
    outgoing.on('error', () => {});
    const [status, body] =
      incoming.method === 'POST'
        ? answer(syncRequestSchema.parse(JSON.parse(await bodyOf(incoming))))
        : [200, { ip: incoming.socket.remoteAddress ?? '' }];
    outgoing.writeHead(status, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    get syncs() {
      return syncs;
    },
    get stale() {
      return stale;
    },
    sharedTerms,
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}

function bodyOf(incoming: IncomingMessage): Promise<string> {
  const zipped = incoming.headers['content-encoding'] === 'gzip';
  return text(zipped ? incoming.pipe(createGunzip()) : incoming);
}
