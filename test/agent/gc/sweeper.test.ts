import { describe, expect, test } from 'vitest';
import { ProviderError } from '#agent/providers/errors.ts';
import { guard } from '#agent/providers/guard.ts';
import type { Provider } from '#agent/providers/provider.ts';
import { LeadershipLostError } from '#agent/runtime/leadership.ts';
import { GcWorld, MINUTE_MS } from './gc-world.ts';

const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });

/** One old orphan named `lost`, beside the machine of a living Proxy. */
async function worldWithOrphan(options = {}) {
  const world = new GcWorld(options);
  await world.machine('lost');
  await world.machine('bystander');
  await world.age();
  return world;
}

describe('a provider that can read a part of its scope', () => {
  test('is swept there; what cannot be read is left alone', async () => {
    const world = await worldWithOrphan();
    world.provider.unread.add('b');
    expect(await world.sweep(2)).toEqual(['partial', 'partial']);
    expect(world.deletes()).toEqual(['zones/a/lost']);
    expect(world.told).toContain('partial memory');
    expect(world.told).not.toContain('skipped memory');
  });

  test('loses nothing when the part of an orphan is the one that cannot be read', async () => {
    const world = await worldWithOrphan();
    await world.sweep();
    world.provider.unread.add('a');
    expect(await world.sweep(3)).toEqual(['partial', 'partial', 'partial']);
    expect(world.deletes()).toEqual([]);
    world.provider.unread.clear();
    // It has to be seen twice again.
    expect(await world.sweep(2)).toEqual(['completed', 'completed']);
    expect(world.deletes()).toEqual(['zones/a/lost']);
  });
});

describe('an orphan', () => {
  test('is deleted when a second sweep finds it, told, and recorded on its former Proxy', async () => {
    const world = await worldWithOrphan();
    expect(await world.sweep()).toEqual(['completed']);
    expect(world.deletes()).toEqual([]);
    expect(await world.sweep()).toEqual(['completed']);
    expect(world.deletes()).toEqual(['zones/a/lost']);
    expect(world.told).toEqual([
      'orphans memory 1 due 0',
      'orphans memory 1 due 1',
      'deleted memory zones/a/lost lost',
    ]);
    expect(world.events).toEqual([
      {
        regarding: {
          apiVersion: 'crawl.example.com/v1alpha1',
          kind: 'Proxy',
          namespace: 'crawl',
          name: 'lost',
          uid: 'lost',
        },
        type: 'Warning',
        reason: 'OrphanCollected',
        action: 'DeleteInstance',
        note: 'deleted zones/a/lost at memory: its Proxy no longer exists',
      },
    ]);
  });

  test('whose Proxy shows again in between begins anew', async () => {
    const world = await worldWithOrphan();
    await world.sweep();
    world.listed.add('lost');
    await world.sweep();
    world.listed.delete('lost');
    await world.sweep();
    expect(world.deletes()).toEqual([]);
    await world.sweep();
    expect(world.deletes()).toEqual(['zones/a/lost']);
  });

  test('that is too young is not even counted', async () => {
    const world = new GcWorld();
    await world.machine('lost');
    await world.clock.advance(9 * MINUTE_MS);
    await world.sweep(3);
    expect(world.told).toEqual(Array(3).fill('orphans memory 0 due 0'));
  });

  test('that the backend does not let go is retried, after those that were not tried', async () => {
    const world = await worldWithOrphan();
    await world.clock.advance(1);
    await world.machine('younger');
    await world.age();
    await world.sweep();
    world.provider.failNext('delete', 'Permanent');
    await world.sweep(3);
    expect(world.deletes()).toEqual(['zones/a/lost', 'zones/a/younger', 'zones/a/lost']);
    expect(world.told).toContain('cannot delete memory zones/a/lost Permanent');
    expect(world.events.map(({ regarding }) => regarding.name)).toEqual(['younger', 'lost']);
  });

  test('that takes longer than its deadline does not hold up the sweep', async () => {
    const world = await worldWithOrphan();
    await world.sweep();
    world.provider.delete = (_id, signal) => untilAborted(signal);
    const sweep = world.sweep();
    await world.clock.advance(MINUTE_MS);
    expect(await sweep).toEqual(['completed']);
    expect(world.told).toContain('cannot delete memory zones/a/lost Transient');
  });
});

describe('a machine', () => {
  test.each([
    ['in the list but not yet in the cache', 'listed'],
    ['in the cache but not in the list', 'cached'],
  ] as const)('whose Proxy is %s is alive', async (_what, where) => {
    const world = await worldWithOrphan();
    world[where].add('lost');
    await world.sweep(3);
    expect(world.deletes()).toEqual([]);
  });

  test.each([
    ['of another installation', 'lost', 'theirs'],
    ['without a uid', '', 'ours'],
    ['without an installation', 'lost', ''],
  ])('%s is left alone', async (_what, uid, installation) => {
    const world = new GcWorld();
    await world.machine(uid, installation);
    await world.age();
    await world.sweep(3);
    expect(world.deletes()).toEqual([]);
  });

  test('whose Proxy reaches the cache during the sweep is not deleted', async () => {
    const world = await worldWithOrphan();
    await world.sweep();
    const list = world.provider.listByTag.bind(world.provider);
    world.provider.listByTag = async (signal) => {
      world.cached.add('lost');
      return list(signal);
    };
    await world.sweep();
    expect(world.told.at(-1)).toBe('orphans memory 1 due 1');
    expect(world.deletes()).toEqual([]);
  });
});

describe('no sweep', () => {
  test('while the cache is out of touch', async () => {
    const world = await worldWithOrphan();
    await world.sweep();
    world.problems = ['proxies: the first list is not complete'];
    const requests = world.provider.requests.length;
    expect(await world.sweep()).toEqual(['refused']);
    expect(world.told.at(-1)).toBe('refused: proxies: the first list is not complete');
    expect(world.provider.requests).toHaveLength(requests);
    world.problems = [];
    await world.sweep();
    expect(world.deletes()).toEqual(['zones/a/lost']);
  });

  test('of one namespace alone, unless that is allowed', async () => {
    const world = await worldWithOrphan({ namespace: 'crawl' });
    expect(await world.sweep(2)).toEqual(['refused', 'refused']);
    expect(world.told[0]).toContain('--gc-allow-namespaced');
    expect(world.deletes()).toEqual([]);

    const allowed = await worldWithOrphan({ namespace: 'crawl', allowNamespaced: true });
    await allowed.sweep(2);
    expect(allowed.deletes()).toEqual(['zones/a/lost']);

    const elsewhere = await worldWithOrphan({ namespace: 'other', allowNamespaced: true });
    await elsewhere.sweep(3);
    expect(elsewhere.deletes()).toEqual([]);
  });

  test('when the Proxies cannot be listed, and what was seen before stays seen', async () => {
    const world = await worldWithOrphan();
    await world.sweep();
    const { listLive } = world;
    world.listLive = () => Promise.reject(new TypeError('504'));
    expect(await world.sweep()).toEqual(['failed']);
    expect(world.told.at(-1)).toBe('failed: TypeError');
    world.listLive = untilAborted;
    const hanging = world.sweep();
    await world.clock.advance(MINUTE_MS);
    expect(await hanging).toEqual(['failed']);
    expect(world.told.at(-1)).toBe('failed: DeadlineError');
    expect(world.deletes()).toEqual([]);
    world.listLive = listLive;
    await world.sweep();
    expect(world.deletes()).toEqual(['zones/a/lost']);
  });

  test.each([
    ['and the cache is empty too', []],
    ['and the cache still has some', ['bystander']],
  ])('deletes anything when the API server has no Proxy at all, %s', async (_what, cached) => {
    const world = await worldWithOrphan();
    await world.sweep();
    world.listed.clear();
    world.cached.clear();
    for (const uid of cached) world.cached.add(uid);
    expect(await world.sweep(3)).toEqual(['held', 'held', 'held']);
    expect(world.told.at(-1)).toBe('held memory 2');
    expect(world.deletes()).toEqual([]);
  });

  test('seen while there was no Proxy at all counts as a sighting', async () => {
    const world = await worldWithOrphan();
    world.listed.clear();
    await world.sweep(2);
    world.listed.add('bystander');
    await world.sweep();
    expect(world.deletes()).toEqual([]);
  });

  test('is held back when there is neither a Proxy nor a machine of ours', async () => {
    const world = new GcWorld();
    world.listed.clear();
    await world.machine('foreign', 'theirs');
    await world.age();
    expect(await world.sweep()).toEqual(['completed']);
  });

  test('goes on once the cache is out of touch in the middle of it', async () => {
    const world = new GcWorld();
    for (let nth = 0; nth < 30; nth++) await world.machine(`lost-${nth}`);
    await world.age();
    await world.sweep();
    const remove = world.provider.delete.bind(world.provider);
    world.provider.delete = async (id, signal) => {
      world.problems = ['proxies: no sign of the API server'];
      return remove(id, signal);
    };
    expect(await world.sweep()).toEqual(['partial']);
    expect(world.deletes()).toHaveLength(1);
  });
});

describe('several providers', () => {
  test('one that cannot be listed is skipped and nothing of it is forgotten', async () => {
    const world = await worldWithOrphan();
    const other = world.newProvider('other');
    world.providers = [world.provider, other];
    await world.machine('lost-too', 'ours', other);
    await world.age();
    await world.sweep();
    world.provider.failNext('list', 'Transient');
    expect(await world.sweep()).toEqual(['partial']);
    expect(world.told).toContain('skipped memory');
    expect(world.deletes()).toEqual([]);
    expect(world.deletes(other)).toEqual(['zones/a/lost-too']);
    await world.sweep();
    expect(world.deletes()).toEqual(['zones/a/lost']);
  });

  test('two entries over one backend delete a machine twice, which is no failure', async () => {
    const world = await worldWithOrphan();
    const { provider } = world;
    const twin: Provider = {
      name: 'twin',
      type: 'memory',
      create: (request, signal) => provider.create(request, signal),
      get: (id, signal) => provider.get(id, signal),
      delete: (id, signal) => provider.delete(id, signal),
      disown: (id, signal) => provider.disown(id, signal),
      listByTag: (signal) => provider.listByTag(signal),
    };
    world.providers = [provider, twin];
    expect(await world.sweep(2)).toEqual(['completed', 'completed']);
    expect(world.told.filter((line) => line.startsWith('cannot'))).toEqual([]);
    expect(world.deletes()).toEqual(['zones/a/lost', 'zones/a/lost']);
    expect(world.provider.machines.get('zones/a/lost')?.goesIn).toBeDefined();
    expect(world.provider.machines.get('zones/a/bystander')?.goesIn).toBeUndefined();
  });

  test('one that leaves the configuration is forgotten', async () => {
    const world = await worldWithOrphan();
    await world.sweep();
    world.providers = [];
    await world.sweep();
    expect(world.told.at(-1)).toBe('forgotten memory');
    world.providers = [world.provider];
    await world.sweep();
    expect(world.deletes()).toEqual([]);
  });

  test('a tenth of its own machines is what each loses at most in a sweep', async () => {
    const world = new GcWorld();
    for (let nth = 0; nth < 25; nth++) {
      await world.machine(`lost-${nth}`);
      await world.machine(`foreign-${nth}`, 'theirs');
      await world.clock.advance(1);
    }
    await world.age();
    await world.sweep(2);
    expect(world.deletes()).toEqual(['zones/a/lost-0', 'zones/a/lost-1']);
    await world.sweep();
    expect(world.deletes().slice(2)).toEqual(['zones/a/lost-2', 'zones/a/lost-3']);
  });
});

describe('the loop', () => {
  test('sweeps for the first time after a whole interval, and ends with its signal', async () => {
    const world = await worldWithOrphan();
    const stop = new AbortController();
    const done = world.sweeper.run(stop.signal);
    await world.clock.advance(10 * MINUTE_MS - 1);
    expect(world.told).toEqual([]);
    await world.clock.advance(1);
    expect(world.told).toEqual(['orphans memory 1 due 0', 'swept completed']);
    await world.clock.advance(10 * MINUTE_MS);
    expect(world.deletes()).toEqual(['zones/a/lost']);
    stop.abort();
    await done;
    expect(world.told.at(-1)).toBe('forgotten memory');
    expect(world.clock.pendingTimers).toBe(0);
  });

  test('ends in the middle of a sweep, without another delete', async () => {
    const world = new GcWorld();
    for (let nth = 0; nth < 30; nth++) await world.machine(`lost-${nth}`);
    await world.age();
    await world.sweep();
    const stop = new AbortController();
    let deletes = 0;
    world.provider.delete = (_id, signal) => {
      deletes++;
      return untilAborted(signal);
    };
    const done = world.sweeper.run(stop.signal);
    await world.clock.advance(10 * MINUTE_MS);
    stop.abort();
    await done;
    expect(deletes).toBe(1);
    expect(world.told).not.toContain('swept completed');
  });

  test('a lost leadership ends the sweep at the first delete', async () => {
    const world = new GcWorld();
    for (let nth = 0; nth < 30; nth++) await world.machine(`lost-${nth}`);
    await world.age();
    let asked = 0;
    const guarded = guard(world.provider, {
      assertHeld() {
        asked++;
        throw new LeadershipLostError('another process may lead');
      },
    });
    if (guarded === undefined) throw new Error('not guarded');
    world.providers = [guarded];
    await world.sweep();
    await expect(world.sweep()).rejects.toBeInstanceOf(LeadershipLostError);
    expect(asked).toBe(1);
    expect(world.deletes()).toEqual([]);
  });

  test('an installation without an id cannot sweep', () => {
    expect(() => new GcWorld({ installation: '' })).toThrow('installation');
  });

  test('a provider whose list never ends is skipped at its deadline', async () => {
    const world = await worldWithOrphan();
    world.provider.listByTag = async (signal) => {
      try {
        return await untilAborted(signal);
      } catch (cause) {
        const at = { op: 'list', provider: 'memory' } as const;
        throw new ProviderError('Transient', at, 'aborted', { cause });
      }
    };
    const sweep = world.sweep();
    await world.clock.advance(2 * MINUTE_MS);
    expect(await sweep).toEqual(['partial']);
    expect(world.told).toEqual(['skipped memory']);
  });
});
