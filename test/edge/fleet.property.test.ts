/**
 * A fleet whose number of shards changes while it is leased, with objects that are evicted, over
 * any history: what is promised across shards holds.
 */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { edgeWith } from './edge-app.ts';
import { AGENT, type Answer, CRAWLER, entry } from './requests.ts';

const RUNS = 300;
const SHARDS = [1, 2, 4];
const PROXIES = 8;
const ADDRESSES = ['192.0.2.1', '192.0.2.2'];

const number = fc.nat(1_000);
const commands = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('acquire' as const), number }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('release' as const), number }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('renew' as const), number }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('ban' as const), number }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('address' as const), number }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('replace' as const), number }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('heartbeat' as const), number }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('shards' as const), number }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('evict' as const), number }) },
);
type Command = typeof commands extends fc.Arbitrary<infer T> ? T : never;

class World {
  readonly #fleet = new Map<string, InventoryEntry>();
  readonly #leases = new Map<string, string>();
  /** Leases by which the target was reported: a further report on one says nothing. */
  readonly #reported = new Set<string>();
  /** Targets by address that was banned for them. */
  readonly #bans = new Map<string, Set<string>>();
  readonly #cluster: string;
  #shards = 1;
  #seq = 0;
  #edge = this.#deploy();
  readonly seen = { granted: 0, refused: 0, bans: 0, reshaped: 0 };

  constructor(cluster: string) {
    this.#cluster = cluster;
    for (let at = 0; at < PROXIES; at++) {
      const attributes = { world: cluster };
      const uid = `${cluster}-${at}`;
      const proxy = entry(`p${at}`, { uid, attributes, maxLeases: 1 + (at % 3) });
      this.#fleet.set(proxy.uid, proxy);
    }
  }

  async step({ do: what, number: n }: Command): Promise<void> {
    const id = [...this.#leases.keys()][n % Math.max(1, this.#leases.size)];
    const uid = `${this.#cluster}-${n % PROXIES}`;
    const proxy = this.#fleet.get(uid);
    if (proxy === undefined) throw new Error('no such proxy');
    switch (what) {
      case 'acquire':
        await this.#acquire(n % 2 === 0 ? 't' : undefined);
        return;
      case 'release':
        if (id === undefined) return;
        expect((await this.#crawl('DELETE', `/v1/leases/${id}`)).status).toBe(204);
        this.#leases.delete(id);
        return;
      case 'renew':
        if (id === undefined) return;
        expect((await this.#crawl('POST', `/v1/leases/${id}/renew`, {})).status).toBe(200);
        return;
      case 'ban':
        return id === undefined ? undefined : this.#ban(id);
      case 'address':
        return this.#change({ ...proxy, egressIP: ADDRESSES[n % 2] ?? '' });
      case 'replace':
        await this.#change({ ...proxy, instance: `${proxy.instance}+` });
        for (const [held, of] of this.#leases) if (of === uid) this.#leases.delete(held);
        return;
      case 'heartbeat':
        return this.#sync('heartbeat');
      case 'shards':
        this.#shards = SHARDS[n % SHARDS.length] ?? 1;
        this.#edge = this.#deploy();
        this.seen.reshaped++;
        return this.#sync('heartbeat');
      case 'evict': {
        const object = env.LEDGER.getByName(`ledger-${n % 4}`);
        // One that does not run cannot be evicted.
        await runInDurableObject(object, () => {});
        await evictDurableObject(object);
      }
    }
  }

  async begin(): Promise<void> {
    await this.#sync('full', [...this.#fleet.values()]);
  }

  /** In the end everything that is not leased can be leased, and nothing else. */
  async end(): Promise<void> {
    const capacity = [...this.#fleet.values()].reduce((sum, { maxLeases }) => sum + maxLeases, 0);
    // Leases that ended in another shard are heard of with a sync.
    for (let round = 0; round < 100 && this.#leases.size < capacity; round++) {
      await this.#sync('heartbeat');
      while (await this.#acquire('never-banned'));
    }
    expect(this.#leases.size).toBe(capacity);
  }

  async #acquire(target: string | undefined): Promise<boolean> {
    const json = {
      selector: { world: this.#cluster },
      ttlSeconds: 3_600,
      ...(target === undefined ? {} : { target }),
    };
    const answer = await this.#crawl('POST', '/v1/leases', json);
    if (answer.status === 409) {
      this.seen.refused++;
      return false;
    }
    expect(answer).toMatchObject({ status: 201 });
    const { name, egressIP } = answer.body.proxy as { name: string; egressIP?: string };
    const uid = `${this.#cluster}-${name.slice(1)}`;
    this.#leases.set(String(answer.body.leaseID), uid);
    this.seen.granted++;
    const live = [...this.#leases.values()].filter((one) => one === uid).length;
    expect(live).toBeLessThanOrEqual(this.#fleet.get(uid)?.maxLeases ?? 0);
    if (egressIP !== undefined && target !== undefined) {
      expect(this.#bans.get(egressIP)?.has(target) ?? false).toBe(false);
    }
    return true;
  }

  async #ban(id: string): Promise<void> {
    const proxy = this.#fleet.get(this.#leases.get(id) ?? '');
    const report = { result: 'banned', target: 't' };
    expect((await this.#crawl('POST', `/v1/leases/${id}/report`, report)).status).toBe(204);
    this.seen.bans++;
    const { egressIP } = proxy ?? {};
    const isFirst = !this.#reported.has(id);
    this.#reported.add(id);
    if (egressIP === undefined || !isFirst) return;
    this.#bans.set(egressIP, (this.#bans.get(egressIP) ?? new Set()).add('t'));
    // Within a second it is known wherever a proxy is behind the address.
    await vi.waitFor(async () => {
      const { body } = await this.#crawl('GET', '/v1/stats');
      expect(body.cooldowns).toBeGreaterThanOrEqual(1);
      // Also in shards of before, where the lease may still be.
      for (let shard = 0; shard < Math.max(...SHARDS); shard++) {
        expect(await this.#pendingAt(shard)).toBe(0);
      }
    }, 1_000);
  }

  #pendingAt(shard: number): Promise<number> {
    return runInDurableObject(env.LEDGER.getByName(`ledger-${shard}`), (_, state) => {
      const rows = state.storage.sql.exec<{ n: number }>(
        'SELECT count(*) AS n FROM cooldowns WHERE pending = 1',
      );
      return rows.one().n;
    });
  }

  async #change(proxy: InventoryEntry): Promise<void> {
    this.#fleet.set(proxy.uid, proxy);
    await this.#sync('delta', [proxy]);
  }

  /** As an agent: what is not accepted is followed by everything. */
  async #sync(kind: 'full' | 'delta' | 'heartbeat', upserts: InventoryEntry[] = []): Promise<void> {
    const json = { term: 1, session: 's', seq: ++this.#seq, kind, upserts };
    const answer = await this.#edge.send('POST', `/v1/agents/${this.#cluster}/sync`, {
      token: AGENT,
      json,
    });
    if (answer.status === 200) return;
    expect(answer).toMatchObject({ status: 409, body: { error: 'resync_required' } });
    expect(kind).not.toBe('full');
    await this.#sync('full', [...this.#fleet.values()]);
  }

  #crawl(method: string, path: string, json?: unknown): Promise<Answer> {
    return this.#edge.send(method, path, {
      token: CRAWLER,
      ...(json === undefined ? {} : { json }),
    });
  }

  #deploy() {
    const vars = { DISCOVERY_TOKEN: CRAWLER, AGENT_TOKEN: AGENT };
    return edgeWith(
      { ...vars, LEASE_SHARDS: String(this.#shards) },
      { clock: systemClock, random: Math.random },
    );
  }
}

it('a fleet keeps its promises over any history of shards', async () => {
  const seen = { granted: 0, refused: 0, bans: 0, reshaped: 0 };
  let worlds = 0;
  const histories = fc.array(commands, { minLength: 20, maxLength: 50 });
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      // Objects of the world before may still have something to say: nobody must mind.
      const world = new World(`w${++worlds}`);
      await world.begin();
      for (const command of history) await world.step(command);
      await world.end();
      for (const key of Object.keys(seen) as (keyof typeof seen)[]) seen[key] += world.seen[key];
    }),
    { numRuns: RUNS },
  );
  expect(seen.granted).toBeGreaterThan(RUNS * 5);
  expect(seen.bans).toBeGreaterThan(RUNS / 2);
  expect(seen.reshaped).toBeGreaterThan(RUNS);
}, 580_000);
