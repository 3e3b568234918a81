import { describe, expect, it } from 'vitest';
import { RPC_VERSION } from '#edge/object/rpc.ts';
import { leaseOf } from '#test/fakes/lease.ts';
import { fakeLedger, runtimeError, TooManyRequests } from './fake-shards.ts';

const ID = '0.abc';
const lease = () => ({ ok: true, lease: leaseOf(ID) }) as const;

/** A ledger whose shard fails so many times before it answers. */
function failing(times: number, error: () => Error) {
  let failures = 0;
  return fakeLedger(
    {
      lease: () => {
        if (failures++ < times) throw error();
        return lease();
      },
    },
    { random: () => 0.5 },
  );
}

describe('a call', () => {
  it('carries the version and the client', async () => {
    const { ledger, asked } = fakeLedger({ lease }, { limits: 'shop leases=7 rate=3' });
    expect(await ledger.lease(ID, 'shop')).toMatchObject({ ok: true });
    expect(asked).toEqual([
      {
        shard: 0,
        version: RPC_VERSION,
        op: 'lease',
        client: { name: 'shop', leasesMax: 7, perSecondMax: 3 },
        args: { id: ID },
      },
    ]);
  });

  it('that met an object which went away is repeated twice, by fresh stubs, a while later', async () => {
    const { ledger, clock, asked, stubs } = failing(2, () => runtimeError({ retryable: true }));
    const answer = ledger.lease(ID, 'shop');
    await clock.advance(87);
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    expect(asked).toHaveLength(2);
    await clock.advance(88);
    expect(await answer).toMatchObject({ ok: true });
    expect([asked.length, stubs(), clock.pendingTimers]).toEqual([3, 3, 0]);
  });

  it('is repeated no third time', async () => {
    const { ledger, clock, asked } = failing(9, () => runtimeError({ retryable: true }));
    const answer = ledger.lease(ID, 'shop');
    await clock.advance(1_000);
    expect(await answer).toMatchObject({ ok: false, code: 'overloaded', uncertain: true });
    expect(asked).toHaveLength(3);
  });

  it('of an object with too much to do is never repeated, whatever else the error says', async () => {
    const error = () => runtimeError({ retryable: true, overloaded: true });
    const { ledger, asked } = failing(9, error);
    const answer = await ledger.lease(ID, 'shop');
    expect(answer).toMatchObject({ code: 'overloaded', uncertain: false });
    expect(answer).toMatchObject({
      cause: expect.objectContaining({ message: 'from the runtime' }),
    });
    expect(asked).toHaveLength(1);
  });

  it('that fails otherwise is a fault, and not repeated', async () => {
    const { ledger, asked } = failing(9, () => new Error('row 17 is broken'));
    await expect(ledger.lease(ID, 'shop')).rejects.toThrow('row 17');
    expect(asked).toHaveLength(1);
  });

  it('is given up after ten seconds', async () => {
    const { ledger, clock } = fakeLedger({ lease: () => new Promise(() => {}) });
    const answer = ledger.lease(ID, 'shop');
    await clock.advance(9_999);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(1);
    expect(await answer).toMatchObject({ code: 'overloaded', uncertain: true });
  });

  it('is not repeated behind the back of who gave it up', async () => {
    const failLate = () => new Promise<never>((_, reject) => rejects.push(reject));
    const rejects: ((error: Error) => void)[] = [];
    const { ledger, clock, asked } = fakeLedger({ lease: failLate });
    const answer = ledger.lease(ID, 'shop');
    await clock.advance(10_000);
    await answer;
    rejects[0]?.(runtimeError({ retryable: true }));
    await clock.advance(1_000);
    expect(asked).toHaveLength(1);
  });

  it('of an object of another version answers overloaded', async () => {
    const older = new Error('The RPC receiver does not implement the method "call".');
    const { ledger } = failing(9, () => older);
    expect(await ledger.lease(ID, 'shop')).toMatchObject({ code: 'overloaded', uncertain: false });
    const newer = fakeLedger(
      {},
      {
        stub: () => ({
          call: async () => ({ ok: false, refusal: { code: 'unsupported_version' } }),
        }),
      },
    );
    expect(await newer.ledger.stats('shop')).toMatchObject({ ok: false, code: 'overloaded' });
  });

  it('that is one too many says when to come again', async () => {
    const { ledger } = fakeLedger({
      lease: () => {
        throw new TooManyRequests(3);
      },
    });
    const refusal = { ok: false, code: 'too_many_requests', retryAfterSeconds: 3 };
    expect(await ledger.lease(ID, 'shop')).toEqual(refusal);
  });
});
