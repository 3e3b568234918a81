/**
 * Idempotency keys of requests that this shard could not grant and that went on to other shards:
 * whoever repeats such a request must look there before anything is granted here. Remembered for
 * as long as a lease may live.
 */
import { Deadlines } from './deadlines.ts';
import { type Change, PASSED_MAX, type PassedRow } from './model.ts';

export class PassedKeys {
  readonly #forgetting = new Deadlines<string>();

  constructor(rows: readonly PassedRow[]) {
    for (const { key, untilMs } of rows) this.#forgetting.set(key, untilMs);
  }

  has(key: string): boolean {
    return this.#forgetting.has(key);
  }

  /** undefined: no more can be remembered. */
  add(key: string, untilMs: number): Change[] | undefined {
    if (!this.has(key) && this.#forgetting.size >= PASSED_MAX) return undefined;
    this.#forgetting.set(key, untilMs);
    return [{ kind: 'put-passed', row: { key, untilMs } }];
  }

  sweep(nowMs: number, rowsMax: number): Change[] {
    const changes: Change[] = [];
    while (changes.length < rowsMax) {
      const key = this.#forgetting.takeDue(nowMs);
      if (key === undefined) break;
      changes.push({ kind: 'delete-passed', key });
    }
    return changes;
  }

  get nextSweepMs(): number | undefined {
    return this.#forgetting.peek()?.dueMs;
  }
}
