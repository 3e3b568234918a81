import { describe, expect, it } from 'vitest';
import type { AcquireResult } from '#edge/object/rpc.ts';
import { leaseOf } from '#test/fakes/lease.ts';
import { fakeLedger, granted, noMatch, runtimeError } from './fake-shards.ts';

const REFUSED = noMatch({ atCapacity: 1, retryAfterSeconds: 5 });
const WAITS = { request: { waitSeconds: 10 } };

/** Shards that refuse at once who does not wait, and let the test answer who does. */
function queues(shards: number) {
  const waiting: { leaseID: string; answer: (result: AcquireResult) => void }[] = [];
  const released: string[] = [];
  const fake = fakeLedger(
    {
      acquire: ({ leaseID, waitMs }) =>
        waitMs === 0
          ? REFUSED
          : new Promise((answer) => {
              waiting.push({ leaseID, answer });
            }),
      release: ({ id }) => {
        released.push(id);
        waiting.find(({ leaseID }) => leaseID === id)?.answer({ ok: false, code: 'cancelled' });
        return undefined;
      },
    },
    { shards },
  );
  return { ...fake, waiting, released };
}

describe('a request that waits', () => {
  it('asks all shards without waiting first, then queues in all of them', async () => {
    const { ledger, caller, clock, trace, waiting } = queues(3);
    const result = ledger.acquire(WAITS, caller);
    await clock.advance(0);
    expect(trace()).toEqual([
      'acquire@0 first',
      'acquire@1 further',
      'acquire@2 further',
      'acquire@0 further',
      'acquire@1 further',
      'acquire@2 further',
    ]);
    expect(waiting.map(({ leaseID }) => leaseID)).toEqual(['0.t3', '1.t4', '2.t5']);
    for (const { answer } of waiting) answer(REFUSED);
    expect(await result).toEqual(noMatch({ atCapacity: 3, retryAfterSeconds: 5 }));
    expect(clock.pendingTimers).toBe(0);
  });

  it('takes the first lease, and leaves the other queues', async () => {
    const { ledger, caller, clock, waiting, released, settled } = queues(3);
    const result = ledger.acquire(WAITS, caller);
    await clock.advance(0);
    waiting[1]?.answer(granted('1.t4'));
    expect(await result).toMatchObject({ ok: true, lease: { leaseID: '1.t4' } });
    await settled();
    expect(released.sort()).toEqual(['0.t3', '2.t5']);
  });

  it('gives back what another shard granted meanwhile, whatever overtook what', async () => {
    const { ledger, caller, clock, waiting, released, settled } = queues(2);
    const result = ledger.acquire(WAITS, caller);
    await clock.advance(0);
    waiting[0]?.answer(granted('0.t2'));
    waiting[1]?.answer(granted('1.t3'));
    expect(await result).toMatchObject({ ok: true, lease: { leaseID: '0.t2' } });
    await settled();
    expect(released).toContain('1.t3');
    expect(released).not.toContain('0.t2');
  });

  it('takes the lease that another request with its key was granted', async () => {
    const { ledger, caller, clock, waiting, released, settled } = queues(2);
    const result = ledger.acquire(WAITS, caller);
    await clock.advance(0);
    waiting[1]?.answer(granted('1.other'));
    expect(await result).toMatchObject({ ok: true, lease: { leaseID: '1.other' } });
    await settled();
    expect(released).toEqual(['0.t2']);
  });

  it('is granted by one shard though another one fails', async () => {
    let asked = 0;
    const fake = fakeLedger(
      {
        acquire: ({ leaseID }, shard) => {
          if (asked++ < 2) return REFUSED;
          if (shard === 0) throw runtimeError({ overloaded: true });
          return { ok: true, lease: leaseOf(leaseID) };
        },
        release: () => undefined,
      },
      { shards: 2 },
    );
    expect(await fake.ledger.acquire(WAITS, fake.caller)).toMatchObject({ ok: true });
  });
});

describe('a crawler that turns out to be gone when it is answered', () => {
  it('gives its lease back', async () => {
    const { ledger, caller, asked } = fakeLedger({
      acquire: ({ leaseID }) => granted(leaseID),
      release: () => undefined,
    });
    const result = await ledger.acquire(WAITS, caller);
    if (result.ok) await result.giveBack();
    expect(asked.at(-1)).toMatchObject({ op: 'release', args: { id: '0.t0', abandoned: true } });
  });

  it('leaves alone what another request with its key was granted', async () => {
    const { ledger, caller, trace } = fakeLedger({ acquire: () => granted('0.other') });
    const result = await ledger.acquire(WAITS, caller);
    if (result.ok) await result.giveBack();
    expect(trace()).toEqual(['acquire@0 first']);
  });
});

describe('a crawler that hangs up', () => {
  for (const shards of [1, 3]) {
    it(`leaves the queue of each of ${shards} shards`, async () => {
      const { ledger, caller, clock, waiting, released, settled } = queues(shards);
      const hangUp = new AbortController();
      const result = ledger.acquire(WAITS, { ...caller, signal: hangUp.signal });
      await clock.advance(0);
      expect(waiting).toHaveLength(shards);
      hangUp.abort();
      expect(await result).toEqual({ ok: false, code: 'cancelled' });
      await settled();
      expect(released.sort()).toEqual(waiting.map(({ leaseID }) => leaseID));
    });
  }

  it('between two shards is not asked for at the next one', async () => {
    const hangUp = new AbortController();
    const fake = fakeLedger(
      {
        acquire: () => {
          hangUp.abort();
          return REFUSED;
        },
        release: () => undefined,
      },
      { shards: 3 },
    );
    const result = await fake.ledger.acquire(WAITS, { ...fake.caller, signal: hangUp.signal });
    expect(result).toEqual({ ok: false, code: 'cancelled' });
    expect(fake.trace().filter((line) => line.startsWith('acquire'))).toHaveLength(1);
  });

  it('before anything was asked is asked for nowhere', async () => {
    const { ledger, caller, asked } = queues(1);
    const result = await ledger.acquire(WAITS, { ...caller, signal: AbortSignal.abort() });
    expect(result).toEqual({ ok: false, code: 'cancelled' });
    expect(asked).toEqual([]);
  });

  it('after the answer changes nothing', async () => {
    const { ledger, caller, clock, waiting, released } = queues(1);
    const hangUp = new AbortController();
    const result = ledger.acquire(WAITS, { ...caller, signal: hangUp.signal });
    await clock.advance(0);
    waiting[0]?.answer(granted('0.t0'));
    await result;
    hangUp.abort();
    await clock.advance(100);
    expect(released).toEqual([]);
  });

  it('whose lease was granted while the release was on its way gives it back', async () => {
    const granting = Promise.withResolvers<AcquireResult>();
    const released: string[] = [];
    const fake = fakeLedger({
      acquire: () => granting.promise,
      release: ({ id }) => {
        released.push(id);
        return undefined;
      },
    });
    const hangUp = new AbortController();
    const result = fake.ledger.acquire(WAITS, { ...fake.caller, signal: hangUp.signal });
    await fake.clock.advance(0);
    hangUp.abort();
    await fake.clock.advance(0);
    expect(released).toEqual(['0.t0']);
    granting.resolve(granted('0.t0'));
    await result;
    await fake.settled();
    expect(released).toEqual(['0.t0', '0.t0']);
  });
});
