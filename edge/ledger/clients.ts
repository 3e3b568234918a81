/**
 * What each client does: how fast it asks, and how its requests ended. In memory only: figures and
 * allowances start again with the object.
 */
import type { ReportResult, Stats } from '#shared/wire/lease.ts';

/** Names that are kept; there are no more tokens than that (`edge/http/tokens.ts`). */
const CLIENTS_MAX = 2_000;

type Outcome = string;

interface Account {
  waiting: number;
  readonly outcomes: Map<Outcome, number>;
  readonly reports: Map<ReportResult, number>;
  /** Requests that may still be made at `filledMs`, of a bucket that holds those of a second. */
  allowance: number;
  filledMs: number;
}

export class Clients {
  readonly #accounts = new Map<string, Account>();

  waiting(name: string): number {
    return this.#accounts.get(name)?.waiting ?? 0;
  }

  waits(name: string, by: 1 | -1): void {
    this.#of(name).waiting += by;
  }

  count(name: string, outcome: Outcome): void {
    increment(this.#of(name).outcomes, outcome);
  }

  countReport(name: string, result: ReportResult): void {
    increment(this.#of(name).reports, result);
  }

  /** Takes one request; otherwise the seconds after which there is room for one. */
  admit(name: string, perSecondMax: number | undefined, nowMs: number): number | undefined {
    if (perSecondMax === undefined) return undefined;
    const account = this.#of(name);
    const capacity = Math.max(1, perSecondMax);
    const passedMs = Math.max(0, nowMs - account.filledMs);
    account.filledMs = nowMs;
    account.allowance = Math.min(capacity, account.allowance + (passedMs / 1000) * perSecondMax);
    if (account.allowance < 1) {
      return Math.max(1, Math.ceil((1 - account.allowance) / perSecondMax));
    }
    account.allowance--;
    return undefined;
  }

  /** How often requests for a lease ended in each way, over all clients. */
  get outcomes(): Record<string, number> {
    const sums = new Map<string, number>();
    for (const { outcomes } of this.#accounts.values()) {
      for (const [outcome, count] of outcomes) increment(sums, outcome, count);
    }
    return Object.fromEntries(sums);
  }

  /** Of these clients, and of all that were heard of. */
  stats(leases: ReadonlyMap<string, ReadonlySet<unknown>>): Stats['clients'] {
    const names = new Set([...this.#accounts.keys(), ...leases.keys()]);
    return [...names].sort().map((name) => {
      const { waiting = 0, outcomes = [], reports = [] } = this.#accounts.get(name) ?? {};
      return {
        name,
        activeLeases: leases.get(name)?.size ?? 0,
        waiting,
        outcomes: Object.fromEntries(outcomes),
        reports: Object.fromEntries(reports),
      };
    });
  }

  #of(name: string): Account {
    let account = this.#accounts.get(name);
    if (account === undefined) {
      if (this.#accounts.size >= CLIENTS_MAX) this.#dropIdle();
      account = {
        waiting: 0,
        outcomes: new Map(),
        reports: new Map(),
        allowance: Number.POSITIVE_INFINITY,
        filledMs: 0,
      };
      this.#accounts.set(name, account);
    }
    return account;
  }

  /** Clients whose tokens are long gone must not fill the memory. */
  #dropIdle(): void {
    for (const [name, { waiting }] of this.#accounts) {
      if (waiting === 0) this.#accounts.delete(name);
    }
  }
}

function increment<Key>(counts: Map<Key, number>, key: Key, by = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}
