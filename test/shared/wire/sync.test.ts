import { describe, expect, it } from 'vitest';
import { clusterNameSchema, syncRequestSchema } from '#shared/wire/sync.ts';

const request = { term: 1, session: 's', seq: 1, kind: 'full' };

describe('a sync request', () => {
  it('may leave out what it does not carry', () => {
    const parsed = syncRequestSchema.parse(request);
    expect(parsed).toEqual({ ...request, upserts: [], removes: [] });
  });

  const faults: [object, (string | number)[]][] = [
    [{ term: -1 }, ['term']],
    [{ seq: 0 }, ['seq']],
    [{ session: '' }, ['session']],
    [{ kind: 'other' }, ['kind']],
    [{ page: { index: 2, of: 2 } }, ['page']],
    [{ page: { index: 0, of: 1001 } }, ['page', 'of']],
    [{ removes: [''] }, ['removes', 0]],
    [{ unknown: 1 }, []],
    [{ kind: 'delta', page: { index: 0, of: 2 } }, ['page']],
    [{ kind: 'heartbeat', removes: ['uid'] }, ['removes']],
    [{ kind: 'full', removes: ['uid'] }, ['removes']],
  ];
  for (const [change, path] of faults) {
    it(`with ${JSON.stringify(change)} is refused at ${path.join('.') || 'the top'}`, () => {
      const parsed = syncRequestSchema.safeParse({ ...request, ...change });
      expect(parsed.error?.issues[0]?.path).toEqual(path);
    });
  }
});

describe('the name of a cluster', () => {
  it('is letters, digits and marks between them', () => {
    const good = ['a', 'A1', 'eu-west.prod_2', 'x'.repeat(253)];
    const bad = ['', '-a', 'a-', 'a b', 'a/b', 'é', '__proto__', 'x'.repeat(254)];
    expect(good.filter((name) => !clusterNameSchema.safeParse(name).success)).toEqual([]);
    expect(bad.filter((name) => clusterNameSchema.safeParse(name).success)).toEqual([]);
  });
});
