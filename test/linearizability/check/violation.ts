/** What a rule finds, and how much it had to look at. */
import type { Operation } from '../history.ts';

export const RULES = [
  /** Statuses, error codes and bodies are those of the contract; nothing breaks without a kill. */
  'answers',
  /** An answer's own time lies between the call and the answer. */
  'server-time',
  /** Never more than `maxLeases` leases of a proxy live at once. */
  'capacity',
  /** A lease is granted to one request; only its Idempotency-Key gets it again. */
  'granted-twice',
  /** The same key and body get the same lease while it lives, another body none. */
  'idempotency',
  /** A grant that comes later has a higher token; no token is given twice, or changes. */
  'tokens',
  /** A lease that was answered can be used until its time is over. */
  'lost-lease',
  /** A lease that is over can be used no more. */
  'revived-lease',
  /** The answers about a lease have an order that explains them all. */
  'order',
  /** Only what the agents declare healthy, leasable, not draining and matching is granted. */
  'offer',
  /** A lease shows its proxy as it is. */
  'view',
  /** A reported pair of egress and target rests for as long as the contract says. */
  'cooldown',
  /** An agent hears of every lease that lives. */
  'active-count',
] as const;
export type Rule = (typeof RULES)[number];

export interface Violation {
  readonly rule: Rule;
  readonly message: string;
  /** The operations that show it. */
  readonly evidence: readonly Operation[];
  /** The proxies that it is about; of syncs, only these matter. */
  readonly uids?: readonly string[];
}

export interface Finding {
  readonly violations: readonly Violation[];
  /**
   * How often the rule could have been broken, as far as that is certain: a rule that had nothing
   * to look at has shown nothing.
   */
  readonly facts: Readonly<Record<string, number>>;
}
