import { describe, expect, it } from 'vitest';
import type { CooldownRow } from '#edge/ledger/model.ts';
import { Peers } from '#edge/object/peers.ts';
import type { Call, LedgerRpc, Reply } from '#edge/object/rpc.ts';
import { FakeClock } from '#test/fakes/clock.ts';

const row = (target: string): CooldownRow => ({
  egress: 'ip 192.0.2.1',
  target,
  strikes: 1,
  untilMs: 9,
  pending: true,
});

/** Shard 0 of three, with the answers of the others in the test's hands. */
function world(answer: (shard: number, call: Call) => Promise<Reply> | Reply) {
  const clock = new FakeClock();
  const calls: string[] = [];
  let pending: readonly CooldownRow[] = [];
  const peers = new Peers({
    clock,
    stubOf: (shard) =>
      ({
        call: async (call: Call) => {
          calls.push(`${call.op} ${shard}`);
          return answer(shard, call);
        },
      }) as LedgerRpc,
    pending: () => pending,
    others: () => [1, 2],
    shared: async (rows) => {
      pending = pending.filter((one) => !rows.includes(one));
    },
  });
  const begin = (...rows: CooldownRow[]) => {
    pending = rows;
  };
  return { clock, calls, peers, begin };
}

const done: Reply = { ok: true, value: undefined };

describe('a shard with news of a cooldown', () => {
  it('tells all others once, and is done', async () => {
    const { peers, calls, begin } = world(() => done);
    begin(row('t'));
    await Promise.all([peers.push(), peers.push()]);
    expect(calls).toEqual(['cool 1', 'cool 2']);
    await peers.push();
    expect(calls).toHaveLength(2);
  });

  it('tells again, within a second, until all have heard', async () => {
    let isAway = true;
    const { peers, calls, begin, clock } = world((shard) => {
      if (shard === 2 && isAway) throw new Error('away');
      return done;
    });
    begin(row('t'));
    const pushed = peers.push();
    for (let at = 0; at < 10; at++) await clock.advance(1_000);
    expect(calls.filter((call) => call === 'cool 2').length).toBeGreaterThanOrEqual(10);
    isAway = false;
    await clock.advance(1_000);
    await pushed;
    expect(clock.pendingTimers).toBe(0);
  });

  it('goes on with what became pending meanwhile', async () => {
    const seen: unknown[] = [];
    const world1 = world((_, call) => {
      seen.push(call.args);
      if (seen.length === 1) world1.begin(row('t'), row('u'));
      return done;
    });
    world1.begin(row('t'));
    await world1.peers.push();
    expect(seen.flat()).toContainEqual(row('u'));
  });
});

describe('a question to another shard', () => {
  it('is answered, or fails when the other is silent or of another version', async () => {
    const answers = [
      () => ({ ok: true, value: [row('t')] }) as Reply,
      () => new Promise<Reply>(() => {}),
      () => ({ ok: false, refusal: { code: 'unsupported_version' } }) as Reply,
    ];
    const outcomes: string[] = [];
    for (const answer of answers) {
      const { peers, clock } = world(answer);
      const asked = peers.cooldownsOf(['ip 192.0.2.1'], [1]).then(
        (rows) => outcomes.push(`${rows.length} row`),
        (error: Error) => outcomes.push(error.message),
      );
      await clock.advance(5_000);
      await asked;
      expect(clock.pendingTimers).toBe(0);
    }
    expect(outcomes).toEqual([
      '1 row',
      'shard 1 did not answer cooldowns',
      'shard 1 refused cooldowns: unsupported_version',
    ]);
  });

  it('about a success is asked of all and missed by none who is there', async () => {
    const { peers, calls } = world((shard) => {
      if (shard === 1) throw new Error('away');
      return done;
    });
    await peers.forgive([{ egress: 'ip 192.0.2.1', target: 't', grantedMs: 1 }]);
    expect(calls).toEqual(['forgive 1', 'forgive 2']);
  });
});
