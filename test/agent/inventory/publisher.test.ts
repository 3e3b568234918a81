import { describe, expect, test, vi } from 'vitest';
import type { SyncOutcome } from '#agent/inventory/edge-client.ts';
import { createFeedback } from '#agent/inventory/feedback.ts';
import {
  createPublisher,
  DRAIN_HEARTBEAT_INTERVAL_MS,
  type PublisherObserver,
} from '#agent/inventory/publisher.ts';
import {
  HEARTBEAT_INTERVAL_MS,
  type InventoryEntry,
  type SyncRequest,
  syncRequestSchema,
} from '#shared/wire/sync.ts';
import { FakeClock, settle } from '#test/fakes/clock.ts';

function entry(uid: string, more: Partial<InventoryEntry> = {}): InventoryEntry {
  return {
    uid,
    namespace: 'crawl',
    name: uid,
    instance: 'h:1',
    host: 'h',
    port: 1,
    protocol: 'http',
    attributes: {},
    maxLeases: 1,
    healthy: true,
    leasable: true,
    draining: false,
    ...more,
  };
}

const accepted = (seq: number): SyncOutcome => ({
  kind: 'accepted',
  response: { acceptedSeq: seq, serverTime: 0, leases: { a: seq }, reports: {}, counters: {} },
});
const away: SyncOutcome = { kind: 'unavailable', message: 'ECONNREFUSED' };

/** A publisher whose edge answers what `answer` says, by default that it took everything. */
function setUp(...initial: InventoryEntry[]) {
  const clock = new FakeClock();
  const inventory = new Map(initial.map((each) => [each.uid, each]));
  const requests: SyncRequest[] = [];
  const it = {
    answer: (request: SyncRequest): SyncOutcome | Promise<SyncOutcome> => accepted(request.seq),
  };
  const observer = {
    synced: vi.fn(),
    edgeAway: vi.fn(),
    edgeBack: vi.fn(),
    refused: vi.fn(),
    staleTerm: vi.fn(),
  } satisfies PublisherObserver;
  const feedback = createFeedback();
  const publisher = createPublisher({
    edge: {
      async sync(body) {
        const request = syncRequestSchema.parse(JSON.parse(body));
        requests.push(request);
        return it.answer(request);
      },
      close: () => Promise.resolve(),
    },
    inventory: () => new Map(inventory),
    feedback,
    clock,
    random: () => 1,
    session: 's1',
    term: 7,
    observer,
  });
  const stop = new AbortController();
  const done = publisher.run(stop.signal);
  const change = (...entries: InventoryEntry[]) => {
    for (const each of entries) inventory.set(each.uid, each);
    publisher.notify();
  };
  const kinds = () => requests.map((request) => request.kind);
  return {
    clock,
    inventory,
    requests,
    it,
    observer,
    feedback,
    publisher,
    stop,
    done,
    change,
    kinds,
  };
}

describe('publisher', () => {
  test('begins its session with everything, also when that is nothing', async () => {
    const empty = setUp();
    await settle();
    expect(empty.requests).toEqual([
      { term: 7, session: 's1', seq: 1, kind: 'full', upserts: [], removes: [] },
    ]);
    const full = setUp(entry('a'), entry('b'));
    await settle();
    expect(full.requests[0]?.upserts.map((each) => each.uid)).toEqual(['a', 'b']);
  });

  test('sends what changed, together, well within 250 ms, and what vanished', async () => {
    const { clock, requests, change, inventory } = setUp(entry('a'), entry('b'), entry('c'));
    await settle();
    change(entry('a', { healthy: false }));
    await clock.advance(20);
    inventory.delete('b');
    change(entry('d'));
    await clock.advance(100);
    expect(requests).toHaveLength(2);
    expect(requests[1]).toMatchObject({ kind: 'delta', seq: 2, removes: ['b'] });
    expect(requests[1]?.upserts.map((each) => each.uid)).toEqual(['a', 'd']);
  });

  test('a steady stream of changes does not put a change off', async () => {
    const { clock, requests, change } = setUp(entry('a'));
    await settle();
    for (let ms = 0; ms < 250; ms += 10) {
      change(entry('a', { latencyMillis: ms }));
      await clock.advance(10);
    }
    expect(requests.length).toBeGreaterThanOrEqual(4);
  });

  test('a notice without a change sends nothing, and a heartbeat goes out when all is quiet', async () => {
    const { clock, publisher, kinds } = setUp(entry('a'));
    await settle();
    publisher.notify();
    await clock.advance(HEARTBEAT_INTERVAL_MS - 1);
    expect(kinds()).toEqual(['full']);
    await clock.advance(1);
    expect(kinds()).toEqual(['full', 'heartbeat']);
    await clock.advance(2 * HEARTBEAT_INTERVAL_MS);
    expect(kinds()).toEqual(['full', 'heartbeat', 'heartbeat', 'heartbeat']);
  });

  test('leases that are left count only once the edge has taken that the proxy drains', async () => {
    const { clock, it, publisher, change } = setUp(entry('a'));
    expect(publisher.remaining('a')).toBeUndefined();
    await settle();
    expect(publisher.remaining('a')).toBeUndefined();
    expect(publisher.remaining('unknown at the edge')).toBe(0);
    it.answer = () => away;
    change(entry('a', { draining: true }));
    await clock.advance(100);
    expect(publisher.remaining('a')).toBeUndefined();
    it.answer = (request) => accepted(request.seq);
    await clock.advance(1_000);
    expect(publisher.remaining('a')).toBe(3);
    it.answer = () => ({
      kind: 'accepted',
      response: { acceptedSeq: 4, serverTime: 0, leases: {}, reports: {}, counters: {} },
    });
    await clock.advance(DRAIN_HEARTBEAT_INTERVAL_MS);
    expect(publisher.remaining('a')).toBe(0);
  });

  test('every request after the full sync names the last change that was acknowledged', async () => {
    const { clock, requests, change } = setUp(entry('a'));
    await settle();
    await clock.advance(HEARTBEAT_INTERVAL_MS);
    change(entry('b'));
    await clock.advance(100);
    await clock.advance(HEARTBEAT_INTERVAL_MS);
    expect(requests.map(({ kind, seq, basis }) => [kind, seq, basis])).toEqual([
      ['full', 1, undefined],
      ['heartbeat', 2, 1],
      ['delta', 3, 1],
      ['heartbeat', 4, 3],
    ]);
  });

  test('a change during a request goes out with the next one', async () => {
    const { clock, it, requests, change } = setUp(entry('a'));
    await settle();
    const gate = Promise.withResolvers<SyncOutcome>();
    it.answer = () => gate.promise;
    change(entry('b'));
    await clock.advance(100);
    change(entry('c'));
    it.answer = (request) => accepted(request.seq);
    gate.resolve(accepted(2));
    await clock.advance(100);
    expect(requests.map((request) => request.upserts.map((each) => each.uid))).toEqual([
      ['a'],
      ['b'],
      ['c'],
    ]);
  });

  test('while the edge is away it is told once, and back it gets what is true then', async () => {
    const { clock, it, requests, change, observer } = setUp(entry('a'));
    await settle();
    it.answer = () => away;
    change(entry('b'));
    await clock.advance(60_000);
    change(entry('b', { healthy: false }));
    change(entry('c'));
    await clock.advance(60_000);
    expect(observer.edgeAway).toHaveBeenCalledTimes(1);
    const tries = requests.length;
    expect(tries).toBeGreaterThan(5);
    expect(tries).toBeLessThan(20);
    it.answer = (request) => accepted(request.seq);
    await clock.advance(15_000);
    expect(observer.edgeBack).toHaveBeenCalledTimes(1);
    const back = requests[tries];
    expect(back).toMatchObject({ kind: 'full', session: 's1', seq: tries + 1 });
    expect(back?.upserts.map((each) => [each.uid, each.healthy])).toEqual([
      ['a', true],
      ['b', false],
      ['c', true],
    ]);
    expect(requests.slice(tries + 1).map((request) => request.kind)).not.toContain('full');
  });

  test('a lost answer is followed by everything under a new seq, never by a guess', async () => {
    const { clock, it, requests, change } = setUp(entry('a'));
    await settle();
    it.answer = (request) => (request.seq === 2 ? away : accepted(request.seq));
    change(entry('b'));
    await clock.advance(5_000);
    expect(requests.map((request) => [request.seq, request.kind])).toEqual([
      [1, 'full'],
      [2, 'delta'],
      [3, 'full'],
    ]);
  });

  test('resync_required is answered with everything at once, repeated with growing pauses', async () => {
    const { clock, it, requests, kinds, change } = setUp(entry('a'));
    await settle();
    it.answer = (request) =>
      request.kind === 'full' ? accepted(request.seq) : { kind: 'resync-required' };
    change(entry('b'));
    await clock.advance(100);
    expect(kinds()).toEqual(['full', 'delta', 'full']);
    it.answer = () => ({ kind: 'resync-required' });
    change(entry('c'));
    await clock.advance(30_000);
    expect(requests.length).toBeLessThan(12);
  });

  test('with a stale term it says so once and asks rarely', async () => {
    const { clock, it, requests, observer } = setUp(entry('a'));
    it.answer = () => ({ kind: 'stale-term' });
    await clock.advance(120_000);
    expect(observer.staleTerm.mock.calls).toEqual([[7]]);
    expect(requests.length).toBeLessThanOrEqual(5);
  });

  test('a refusal is told once per reason, and again after it was healed in between', async () => {
    const { clock, it, observer } = setUp(entry('a'));
    let request = 0;
    const refuse = (why: string) => () => {
      const message = `401 ${why} (request r${request++}); do something`;
      return { kind: 'refused', status: 401, message } as const;
    };
    it.answer = refuse('bad token');
    await clock.advance(60_000);
    expect(observer.refused).toHaveBeenCalledTimes(1);
    it.answer = refuse('other cluster');
    await clock.advance(60_000);
    expect(observer.refused).toHaveBeenCalledTimes(2);
    it.answer = (sync) => accepted(sync.seq);
    await clock.advance(60_000);
    it.answer = refuse('other cluster');
    await clock.advance(60_000);
    expect(observer.refused).toHaveBeenCalledTimes(3);
    expect(observer.edgeAway).not.toHaveBeenCalled();
  });

  test('an inventory above one body goes in pages, and a failing page begins it anew', async () => {
    const attributes = Object.fromEntries(
      Array.from({ length: 32 }, (_, nth) => [`key-${nth}`, 'x'.repeat(63)]),
    );
    const many = Array.from({ length: 4_000 }, (_, nth) => entry(`uid-${nth}`, { attributes }));
    const large = setUp(...many);
    large.it.answer = (request) => (request.seq === 2 ? away : accepted(request.seq));
    await large.clock.advance(5_000);
    const pages = large.requests.map((request) => request.page?.index);
    expect(pages).toEqual([0, 1, 0, 1, 2]);
    expect(large.requests.at(-1)?.page).toEqual({ index: 2, of: 3 });
    const last = large.requests.slice(2).flatMap((request) => request.upserts);
    expect(last.map((each) => each.uid)).toEqual(many.map((each) => each.uid));
    for (const request of large.requests) {
      expect(Buffer.byteLength(JSON.stringify(request))).toBeLessThan(8 * 1024 * 1024);
    }
  });

  test('what the answer says of leases is readable', async () => {
    const { clock, feedback } = setUp(entry('a'));
    await clock.advance(HEARTBEAT_INTERVAL_MS);
    expect(feedback.activeLeases('a')).toBe(2);
    expect(feedback.lastAnswerMs).toBe(clock.monotonicMs());
  });

  test('stopping ends every wait', async () => {
    const { clock, stop, done } = setUp(entry('a'));
    await settle();
    stop.abort();
    await done;
    expect(clock.pendingTimers).toBe(0);
  });
});
