import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyPage, deltaPages, fullPages, type Sent, syncBody } from '#agent/inventory/pages.ts';
import { type InventoryEntry, syncRequestSchema } from '#shared/wire/sync.ts';

const entries: fc.Arbitrary<InventoryEntry> = fc.record({
  uid: fc.constantFrom(...'abcdefgh'),
  namespace: fc.constant('crawl'),
  name: fc.constantFrom('p', 'q'),
  instance: fc.string({ maxLength: 20 }),
  host: fc.constant('h'),
  port: fc.integer({ min: 1, max: 65_535 }),
  protocol: fc.constantFrom('http', 'socks5'),
  attributes: fc.dictionary(fc.string({ maxLength: 5 }), fc.string({ maxLength: 5 })),
  maxLeases: fc.constant(1),
  healthy: fc.constantFrom(true, false, null),
  leasable: fc.boolean(),
  draining: fc.boolean(),
});
const inventories = fc
  .array(entries)
  .map((list) => new Map(list.map((each) => [each.uid, each] as const)));

test('the pages of a delta turn what was sent into what is, within their size', () => {
  fc.assert(
    fc.property(
      inventories,
      inventories,
      fc.integer({ min: 1, max: 2_000 }),
      (before, after, max) => {
        const sent: Sent = new Map();
        for (const page of fullPages(before, max)) applyPage(sent, page);
        for (const page of deltaPages(sent, after, max)) {
          const bytes = Buffer.byteLength(
            [...page.upserts.map(({ text }) => text), ...page.removes].join(),
          );
          expect(page.upserts.length + page.removes.length === 1 || bytes <= max).toBe(true);
          applyPage(sent, page);
        }
        expect(sent).toEqual(after);
        expect(deltaPages(sent, after, max)).toEqual([]);
      },
    ),
  );
});

test('a body is the request that the edge parses', () => {
  fc.assert(
    fc.property(inventories, (inventory) => {
      const [page] = fullPages(inventory);
      const body = syncBody({ term: 1, session: 's', seq: 1, kind: 'full' }, page);
      const request = syncRequestSchema.parse(JSON.parse(body));
      expect(request.upserts).toEqual([...inventory.values()]);
      expect(request.removes).toEqual([]);
    }),
  );
});
