import { describe, expect, it } from 'vitest';
import type { AcquireCall, AcquireResult } from '#edge/object/rpc.ts';
import {
  type Asked,
  fakeLedger,
  granted,
  noMatch,
  runtimeError,
  type Script,
  TooManyRequests,
} from './fake-shards.ts';

const ASK = { request: {} };
const REFUSED = noMatch({ atCapacity: 1 });

/** A shard's answer by its number; a number stands for so many requests too many. */
function answers(byShard: readonly (AcquireResult | number | 'grant')[]): Script {
  return {
    acquire: ({ leaseID }, shard) => {
      const answer = byShard[shard] ?? REFUSED;
      if (typeof answer === 'number') throw new TooManyRequests(answer);
      return answer === 'grant' ? granted(leaseID) : answer;
    },
    release: () => undefined,
  };
}

const tooManyLeases = (retryAfterSeconds: number): AcquireResult => ({
  ok: false,
  code: 'too_many_leases',
  retryAfterSeconds,
});
const queueFull: AcquireResult = { ok: false, code: 'queue_full', retryAfterSeconds: 9 };
const overloaded: AcquireResult = { ok: false, code: 'overloaded', reason: 'too many leases' };

const argsOf = ({ args }: Asked) => args as AcquireCall;

describe('a request for a lease with one shard', () => {
  it('is one call, with an id that names the shard', async () => {
    const { ledger, caller, asked, trace } = fakeLedger(answers(['grant']));
    const request = { target: 'shop.example', waitSeconds: 5 };
    const result = await ledger.acquire({ request }, caller);
    expect(result).toMatchObject({ ok: true, lease: { leaseID: '0.t0' } });
    expect(trace()).toEqual(['acquire@0 first']);
    expect(asked.map(argsOf)).toMatchObject([{ leaseID: '0.t0', request, waitMs: 5_000 }]);
  });

  it('is repeated under the same id, and waits no longer for that', async () => {
    let failures = 0;
    const { ledger, caller, clock, asked } = fakeLedger({
      acquire: ({ leaseID }) => {
        if (failures++ === 0) throw runtimeError({ retryable: true });
        return granted(leaseID);
      },
    });
    const result = ledger.acquire({ request: { waitSeconds: 5 } }, caller);
    await clock.advance(25);
    expect(await result).toMatchObject({ ok: true });
    expect(asked.map(argsOf)).toMatchObject([
      { leaseID: '0.t0', waitMs: 5_000 },
      { leaseID: '0.t0', waitMs: 4_975 },
    ]);
  });

  it('is given back when nobody knows what came of it', async () => {
    const { ledger, caller, clock, asked, settled } = fakeLedger({
      acquire: () => new Promise(() => {}),
      release: () => undefined,
    });
    const result = ledger.acquire({ request: { waitSeconds: 20 } }, caller);
    await clock.advance(30_000);
    expect(await result).toMatchObject({ ok: false, code: 'overloaded' });
    await settled();
    expect(asked.at(-1)).toMatchObject({ op: 'release', args: { id: '0.t0', abandoned: true } });
  });
});

describe('a request for a lease with several shards', () => {
  const order = async (byShard: Parameters<typeof answers>[0], at = 0) => {
    const { ledger, caller, trace } = fakeLedger(answers(byShard), {
      shards: 4,
      random: () => at,
    });
    const result = await ledger.acquire(ASK, caller);
    return { trace: trace(), result };
  };

  it('starts at a random shard, and goes on round the ring until one grants', async () => {
    const refused = [REFUSED, REFUSED, REFUSED, REFUSED];
    expect((await order(['grant'])).trace).toEqual(['acquire@0 first']);
    const { trace } = await order([REFUSED, 'grant', ...refused], 0.5);
    expect(trace).toEqual([
      'acquire@2 first',
      'acquire@3 further',
      'acquire@0 further',
      'acquire@1 further',
    ]);
    expect((await order(refused, 0.999)).trace[0]).toBe('acquire@3 first');
  });

  it('is counted by the first shard that takes it', async () => {
    const { trace } = await order([3, 3, REFUSED, 'grant']);
    expect(trace).toEqual([
      'acquire@0 first',
      'acquire@1 first',
      'acquire@2 first',
      'acquire@3 further',
    ]);
  });

  it('is refused with the sum of all counts and the soonest time', async () => {
    const { result } = await order([
      noMatch({ atCapacity: 2, retryAfterSeconds: 40 }),
      noMatch({ inCooldown: 3, withheld: 1, retryAfterSeconds: 7 }),
      noMatch({ unhealthy: 4 }),
      noMatch({ withheld: 2 }),
    ]);
    expect(result).toEqual(
      noMatch({ atCapacity: 2, inCooldown: 3, unhealthy: 4, withheld: 3, retryAfterSeconds: 7 }),
    );
    const { result: hopeless } = await order([]);
    expect(hopeless).toEqual(noMatch({ atCapacity: 4 }));
  });

  it('is granted by the next shard when one is full, busy or has given enough', async () => {
    for (const refusal of [tooManyLeases(5), queueFull, overloaded, 3]) {
      const { result } = await order([refusal, 'grant']);
      expect(result).toMatchObject({ ok: true, lease: { leaseID: '1.t1' } });
    }
  });

  it('is too much only when every shard says so', async () => {
    const all = await order([tooManyLeases(50), tooManyLeases(8), tooManyLeases(9), 20]);
    expect(all.result).toEqual(tooManyLeases(8));
    const rate = await order([5, 3, 4, 6]);
    expect(rate.result).toMatchObject({ code: 'too_many_requests', retryAfterSeconds: 3 });
    const some = await order([tooManyLeases(5), REFUSED, overloaded, queueFull]);
    expect(some.result).toEqual(noMatch({ atCapacity: 1 }));
  });

  it('is refused as overloaded, or for a full queue, when no shard looked', async () => {
    const busy = await order([tooManyLeases(5), overloaded, overloaded, 3]);
    expect(busy.result).toEqual(overloaded);
    const full = await order([overloaded, queueFull, overloaded, overloaded]);
    expect(full.result).toEqual(queueFull);
  });

  it('ends at once when every shard would say the same', async () => {
    const tooLong: AcquireResult = { ok: false, code: 'ttl_too_long', maxTtlSeconds: 3600 };
    const { result, trace } = await order([tooLong, 'grant']);
    expect(result).toEqual(tooLong);
    expect(trace).toHaveLength(1);
  });

  it('goes on past a shard that cannot be reached', async () => {
    const { ledger, caller, clock, trace } = fakeLedger(
      {
        acquire: ({ leaseID }, shard) => {
          if (shard === 0) throw runtimeError({ retryable: true });
          return granted(leaseID);
        },
        release: () => undefined,
      },
      { shards: 2 },
    );
    const result = ledger.acquire(ASK, caller);
    await clock.advance(200);
    expect(await result).toMatchObject({ ok: true, lease: { leaseID: '1.t1' } });
    // Somebody may have granted it all the same.
    expect(trace()).toContain('release@0');
  });

  it('shares a client out among them', async () => {
    const { ledger, caller, asked } = fakeLedger(answers([]), {
      shards: 4,
      limits: 'shop leases=6 rate=10',
    });
    await ledger.acquire(ASK, caller);
    expect(asked.map(({ client }) => client)).toEqual(
      [2, 2, 1, 1].map((leasesMax) => ({ name: 'shop', leasesMax, perSecondMax: 2.5 })),
    );
  });
});
