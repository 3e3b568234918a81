import { describe, expect, it } from 'vitest';
import { shardOfKey } from '#edge/ledger/shards.ts';
import type { AcquireResult, FindResult } from '#edge/object/rpc.ts';
import { leaseOf } from '#test/fakes/lease.ts';
import { fakeLedger, granted, noMatch, runtimeError, TooManyRequests } from './fake-shards.ts';

const SHARDS = 4;
const REFUSED = noMatch({ atCapacity: 1 });
const PASSED_ON: AcquireResult = { ok: false, code: 'passed_on' };
const KEY = 'key-of-a-digest';
const IDEMPOTENT = { request: {}, idempotency: { key: KEY, body: 'body' } };
const HOME = shardOfKey(KEY, SHARDS);
/** The shards behind home, in the order of the ring. */
const [NEXT = 0, SECOND = 0, THIRD = 0] = [1, 2, 3].map((step) => (HOME + step) % SHARDS);

/** A session key of the client whose home is this shard. */
function sessionAt(shard: number): string | undefined {
  const keys = Array.from({ length: 100 }, (_, index) => `cart-${index}`);
  return keys.find((key) => shardOfKey(`shop\n${key}`, SHARDS) === shard);
}

interface Shards {
  readonly home?: AcquireResult | Error;
  readonly further?: Readonly<Record<number, AcquireResult>>;
  readonly found?: Readonly<Record<number, FindResult>>;
  readonly unreachable?: number;
}

function keyed({ home = REFUSED, further = {}, found = {}, unreachable }: Shards) {
  return fakeLedger(
    {
      acquire: ({ place, leaseID }, shard) => {
        if (place === 'home') {
          if (home instanceof Error) throw home;
          return home;
        }
        return further[shard] ?? (shard === HOME ? granted(leaseID) : REFUSED);
      },
      find: (_, shard) => {
        if (shard === unreachable) throw runtimeError({ overloaded: true });
        return found[shard] ?? {};
      },
      release: () => undefined,
    },
    { shards: SHARDS },
  );
}

describe('a request with a key and several shards', () => {
  it('goes to the home of its key, and no further when that grants', async () => {
    const { ledger, caller, trace, asked } = keyed({ home: granted(`${HOME}.x`) });
    expect(await ledger.acquire(IDEMPOTENT, caller)).toMatchObject({ ok: true });
    expect(trace()).toEqual([`acquire@${HOME} home`]);
    expect(asked[0]).toMatchObject({ args: { idempotency: IDEMPOTENT.idempotency } });
  });

  it('goes on from home to the others, always in the same order', async () => {
    const { ledger, caller, trace } = keyed({ further: { [SECOND]: granted(`${SECOND}.x`) } });
    const result = await ledger.acquire(IDEMPOTENT, caller);
    expect(result).toMatchObject({ ok: true, lease: { leaseID: `${SECOND}.x` } });
    const further = [NEXT, SECOND].map((shard) => `acquire@${shard} further`);
    expect(trace()).toEqual([`acquire@${HOME} home`, ...further]);
  });

  it('is refused with the counts of all of them', async () => {
    const { ledger, caller } = keyed({});
    expect(await ledger.acquire(IDEMPOTENT, caller)).toEqual(noMatch({ atCapacity: 4 }));
  });

  it('has the home of its client and session when it has no idempotency key', async () => {
    const { ledger, caller, trace } = keyed({ home: granted('0.x') });
    await ledger.acquire({ request: { sessionKey: 'cart-7' } }, caller);
    expect(trace()).toEqual([`acquire@${shardOfKey('shop\ncart-7', SHARDS)} home`]);
  });

  it('ends with what home says of too many requests, a mismatch or too long a time', async () => {
    const mismatch: AcquireResult = { ok: false, code: 'idempotency_mismatch' };
    const tooLong: AcquireResult = { ok: false, code: 'ttl_too_long', maxTtlSeconds: 1 };
    for (const home of [mismatch, tooLong]) {
      const { ledger, caller, trace } = keyed({ home });
      expect(await ledger.acquire(IDEMPOTENT, caller)).toEqual(home);
      expect(trace()).toHaveLength(1);
    }
    const { ledger, caller, trace } = fakeLedger(
      {
        acquire: () => {
          throw new TooManyRequests(2);
        },
      },
      { shards: SHARDS },
    );
    expect(await ledger.acquire(IDEMPOTENT, caller)).toMatchObject({ code: 'too_many_requests' });
    expect(trace()).toHaveLength(1);
  });

  it('ends when home cannot be reached: nobody else knows what became of the key', async () => {
    const { ledger, caller, trace } = keyed({ home: runtimeError({ overloaded: true }) });
    expect(await ledger.acquire(IDEMPOTENT, caller)).toMatchObject({ code: 'overloaded' });
    expect(trace()).toHaveLength(1);
  });
});

describe('a request that home did not look for a proxy for', () => {
  const tooMany: AcquireResult = { ok: false, code: 'too_many_leases', retryAfterSeconds: 9 };

  function withNote(note: AcquireResult, request = {}, home: AcquireResult = tooMany) {
    const { ledger, caller, trace } = fakeLedger(
      {
        acquire: ({ place, leaseID }) => {
          if (place === 'note') return note;
          return place === 'home' ? home : granted(leaseID);
        },
        find: () => ({}),
      },
      { shards: SHARDS },
    );
    return { result: ledger.acquire({ ...IDEMPOTENT, request }, caller), trace };
  }

  it('goes on when home has been told to remember that', async () => {
    for (const code of ['noted', 'passed_on'] as const) {
      const { result, trace } = withNote({ ok: false, code });
      expect(await result).toMatchObject({ ok: true });
      const calls = [`${HOME} home`, `${HOME} note`, `${NEXT} further`];
      expect(trace()).toEqual(calls.map((call) => `acquire@${call}`));
    }
  });

  it('ends when home cannot, or has its lease by now', async () => {
    const full: AcquireResult = { ok: false, code: 'overloaded', reason: 'too many keys' };
    for (const answer of [full, granted(`${HOME}.x`)]) {
      expect(await withNote(answer).result).toMatchObject(answer);
    }
  });

  it('is noted, too, when it may have been its session that home passed on', async () => {
    const sessionKey = sessionAt(HOME);
    const { result, trace } = withNote({ ok: false, code: 'noted' }, { sessionKey }, PASSED_ON);
    expect(await result).toMatchObject({ ok: true });
    expect(trace().slice(-2)).toEqual([`acquire@${HOME} note`, `acquire@${NEXT} further`]);
  });
});

describe('the home of an idempotency key', () => {
  const settled = ({ asked }: ReturnType<typeof keyed>) =>
    asked.filter(({ op }) => op === 'settle').map(({ shard, args }) => ({ shard, args }));
  const arbiters = ({ asked }: ReturnType<typeof keyed>) =>
    asked.filter(({ args }) => typeof args === 'object' && 'arbitrateMs' in args);

  it('decides alone, and is told when a request that went on has ended', async () => {
    const world = keyed({ further: { [SECOND]: granted(`${SECOND}.x`) } });
    await world.ledger.acquire(IDEMPOTENT, world.caller);
    const [arbiter, ...others] = arbiters(world);
    expect(others).toEqual([]);
    expect(arbiter).toMatchObject({ shard: HOME, args: { arbitrateMs: 15_000 } });
    const { leaseID } = { ...(arbiter?.args as object) } as { leaseID?: string };
    expect(settled(world)).toEqual([{ shard: HOME, args: { key: KEY, id: leaseID } }]);
  });

  it('knows by itself what it has ended', async () => {
    for (const home of [
      granted(`${HOME}.x`),
      { ok: false, code: 'idempotency_mismatch' } as const,
      { ok: false, code: 'ttl_too_long', maxTtlSeconds: 9 } as const,
    ]) {
      const world = keyed({ home });
      await world.ledger.acquire(IDEMPOTENT, world.caller);
      expect(settled(world)).toEqual([]);
    }
  });

  it('is told, too, when it could not be reached or nobody granted', async () => {
    for (const home of [REFUSED, runtimeError({ overloaded: true })]) {
      const world = keyed({ home, further: { [HOME]: REFUSED } });
      await world.ledger.acquire(IDEMPOTENT, world.caller);
      expect(settled(world)).toHaveLength(1);
    }
  });

  it('is asked for no session without an idempotency key', async () => {
    const world = keyed({});
    await world.ledger.acquire({ request: { sessionKey: 'cart-7' } }, world.caller);
    expect([...arbiters(world), ...settled(world)]).toEqual([]);
  });
});

describe('a request that went on from home once before', () => {
  it('gets the lease that another shard has of its key', async () => {
    const lease = leaseOf(`${THIRD}.x`);
    const { ledger, caller, trace } = keyed({ home: PASSED_ON, found: { [THIRD]: { lease } } });
    expect(await ledger.acquire(IDEMPOTENT, caller)).toMatchObject({ ok: true, lease });
    const finds = [NEXT, SECOND, THIRD].map((shard) => `find@${shard}`);
    expect(trace()).toEqual([`acquire@${HOME} home`, ...finds]);
  });

  it('is a mismatch when another shard says so', async () => {
    const { ledger, caller } = keyed({ home: PASSED_ON, found: { [NEXT]: { mismatch: true } } });
    const result = await ledger.acquire(IDEMPOTENT, caller);
    expect(result).toEqual({ ok: false, code: 'idempotency_mismatch' });
  });

  it('begins where its session was bound last, and ends at home', async () => {
    const { ledger, caller, trace } = keyed({
      home: PASSED_ON,
      found: { [NEXT]: { boundToken: 5 }, [THIRD]: { boundToken: 9 } },
    });
    expect(await ledger.acquire(IDEMPOTENT, caller)).toMatchObject({ ok: true });
    const further = [THIRD, NEXT, SECOND, HOME].map((shard) => `acquire@${shard} further`);
    expect(trace().slice(4)).toEqual(further);
  });

  it('ends when a shard that may have its lease cannot be asked', async () => {
    const { ledger, caller, trace } = keyed({ home: PASSED_ON, unreachable: SECOND });
    expect(await ledger.acquire(IDEMPOTENT, caller)).toMatchObject({ code: 'overloaded' });
    expect(trace()).toHaveLength(4);
  });

  it('goes on all the same when only its session may be there', async () => {
    const sessionKey = 'cart-7';
    const { ledger, caller } = keyed({ home: PASSED_ON, unreachable: 0, further: {} });
    const result = await ledger.acquire({ request: { sessionKey } }, caller);
    expect(result).toMatchObject({ ok: true });
  });
});

describe('a request with both keys and several shards', () => {
  const sessionKey = sessionAt(SECOND);
  const both = { ...IDEMPOTENT, request: { sessionKey } };
  const noted: AcquireResult = { ok: false, code: 'noted' };

  function withNote(note: AcquireResult, found: Shards['found'] = {}) {
    return fakeLedger(
      {
        acquire: ({ place, leaseID }) => (place === 'note' ? note : granted(leaseID)),
        find: (_, shard) => found[shard] ?? {},
      },
      { shards: SHARDS },
    );
  }

  it('goes to the home of its session, after the home of its key has noted it', async () => {
    const { ledger, caller, trace } = withNote(noted);
    expect(await ledger.acquire(both, caller)).toMatchObject({ ok: true });
    expect(trace()).toEqual([`acquire@${HOME} note`, `acquire@${SECOND} home`]);
  });

  it('ends at the home of its key with a lease, a mismatch, or what keeps it from noting', async () => {
    const mismatch: AcquireResult = { ok: false, code: 'idempotency_mismatch' };
    const overloaded: AcquireResult = { ok: false, code: 'overloaded', reason: 'too many keys' };
    for (const answer of [granted(`${HOME}.x`), mismatch, overloaded]) {
      const { ledger, caller, trace } = withNote(answer);
      expect(await ledger.acquire(both, caller)).toMatchObject(answer);
      expect(trace()).toHaveLength(1);
    }
  });

  it('looks for its lease everywhere when it was noted before', async () => {
    const lease = leaseOf(`${NEXT}.x`);
    const again = withNote(PASSED_ON, { [NEXT]: { lease } });
    expect(await again.ledger.acquire(both, again.caller)).toMatchObject({ ok: true, lease });
    const lost = withNote(PASSED_ON);
    expect(await lost.ledger.acquire(both, lost.caller)).toMatchObject({ ok: true });
    expect(lost.trace().at(-1)).toBe(`acquire@${SECOND} further`);
  });
});
