/** Faults that a test puts between a client and the fake; the first that fits is taken. */

/**
 * - a refusal with a status, as the API words it, or as HTML when something else in front of it
 *   answers;
 * - `cut`: the connection ends before the request is looked at;
 * - `lost`: the request is carried out and the connection ends without an answer;
 * - `silent`: no answer ever;
 * - `slow`: the answer is held back until `release`.
 */
export type Fault =
  | { readonly kind: 'refuse'; readonly status: number; reason?: string; message?: string }
  | { readonly kind: 'html'; readonly status: number }
  | { readonly kind: 'cut' | 'lost' | 'silent' }
  | { readonly kind: 'slow'; readonly release: Promise<unknown> };

export interface FaultRule {
  readonly fault: Fault;
  /** Of the requests it is about; absent: all. */
  readonly method?: string;
  readonly path?: RegExp;
  /** How often; absent: until it is taken away. */
  readonly times?: number;
}

export class Faults {
  readonly #rules: { rule: FaultRule; left: number }[] = [];

  /** Returns what takes it away again. */
  add(rule: FaultRule): () => void {
    const entry = { rule, left: rule.times ?? Number.POSITIVE_INFINITY };
    this.#rules.push(entry);
    return () => {
      entry.left = 0;
    };
  }

  take(method: string, path: string): Fault | undefined {
    const entry = this.#rules.find(
      ({ rule, left }) =>
        left > 0 &&
        (rule.method === undefined || rule.method === method) &&
        (rule.path === undefined || rule.path.test(path)),
    );
    if (entry === undefined) return undefined;
    entry.left--;
    return entry.rule.fault;
  }
}
