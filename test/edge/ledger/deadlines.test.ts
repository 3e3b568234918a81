import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Deadlines } from '#edge/ledger/deadlines.ts';

const operations = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('set' as const), item: fc.nat(20), dueMs: fc.nat(50) }),
    fc.record({ do: fc.constant('delete' as const), item: fc.nat(20) }),
    fc.record({ do: fc.constant('take' as const), nowMs: fc.nat(50) }),
  ),
);

describe('deadlines', () => {
  it('give items in the order of their times, whatever was set, moved or deleted', () => {
    fc.assert(
      fc.property(operations, (history) => {
        const deadlines = new Deadlines<number>();
        const model = new Map<number, number>();
        for (const operation of history) {
          if (operation.do === 'set') {
            deadlines.set(operation.item, operation.dueMs);
            model.set(operation.item, operation.dueMs);
          } else if (operation.do === 'delete') {
            deadlines.delete(operation.item);
            model.delete(operation.item);
          } else {
            const soonest = Math.min(...model.values());
            const item = deadlines.takeDue(operation.nowMs);
            if (soonest > operation.nowMs) expect(item).toBeUndefined();
            else expect(model.get(item ?? -1)).toBe(soonest);
            if (item !== undefined) model.delete(item);
          }
          expect(deadlines.size).toBe(model.size);
          const soonest = model.size === 0 ? undefined : Math.min(...model.values());
          expect(deadlines.peek()?.dueMs).toBe(soonest);
        }
      }),
    );
  });
});
