import { describe, expect, it } from 'vitest';
import { leaseOf } from '#test/fakes/lease.ts';
import { fakeLedger, runtimeError } from './fake-shards.ts';

const OPTIONS = { shards: 4 };

describe('what is asked about a lease', () => {
  const script = {
    lease: ({ id }: { id: string }) => ({ ok: true, lease: leaseOf(id) }) as const,
    renew: ({ id }: { id: string }) => ({ ok: true, lease: leaseOf(id) }) as const,
    report: () => ({ ok: true }) as const,
    release: () => undefined,
  };

  it('goes to the shard that its id names, also one that there is no longer', async () => {
    const { ledger, trace } = fakeLedger(script, OPTIONS);
    await ledger.lease('3.abc', 'shop');
    await ledger.renew('17.abc', 60, 'shop');
    await ledger.report('0.abc', { result: 'ok' }, 'shop');
    await ledger.release('63.abc');
    // From before there were several shards.
    await ledger.lease('kTn4vXqI0fJ2Qm3RZb9sAw', 'shop');
    expect(trace()).toEqual(['lease@3', 'renew@17', 'report@0', 'release@63', 'lease@0']);
  });

  it('is unknown without a call when the id is none of ours', async () => {
    const { ledger, asked } = fakeLedger(script, OPTIONS);
    const unknown = { ok: false, code: 'unknown_lease' };
    for (const id of ['64.abc', '100.abc', '-1.abc', '%00', 'a/b', '1e1.x y', '', '.', '💥']) {
      expect(await ledger.lease(id, 'shop')).toEqual(unknown);
      expect(await ledger.renew(id, 1, 'shop')).toEqual(unknown);
      expect(await ledger.report(id, { result: 'banned' }, 'shop')).toEqual(unknown);
      expect(await ledger.release(id)).toBeUndefined();
    }
    expect(asked).toEqual([]);
  });

  it('names the client, except to give back', async () => {
    const { ledger, asked } = fakeLedger(script, { limits: 'shop rate=1' });
    await ledger.report('0.a', { result: 'ok' }, 'shop');
    await ledger.release('0.a');
    expect(asked.map(({ client }) => client?.name)).toEqual(['shop', undefined]);
  });

  it('is refused when the shard cannot be reached', async () => {
    const fail = () => {
      throw runtimeError({ overloaded: true });
    };
    const { ledger } = fakeLedger({ renew: fail, release: fail }, OPTIONS);
    expect(await ledger.renew('1.a', 1, 'shop')).toMatchObject({ code: 'overloaded' });
    expect(await ledger.release('1.a')).toMatchObject({ code: 'overloaded' });
  });
});
