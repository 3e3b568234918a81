/**
 * What the edge may know of each proxy at a time. A proxy is a register with one writer, its
 * cluster's agent, which sends one sync after the other: a write that is not answered may or may
 * not have happened, until a later one is.
 */
import {
  isUnknown,
  type Span,
  type SyncOperation,
  succeeded,
  type Version,
  type Write,
} from '../history.ts';

/** A write of one proxy. */
export interface Entered extends Span {
  readonly version: Version | null;
  readonly isCertain: boolean;
  readonly sync: SyncOperation;
}

export interface Machine {
  readonly uid: string;
  readonly instance: string;
}

export class Inventory {
  readonly #byUid = new Map<string, Entered[]>();
  readonly #machines = new Map<string, Machine>();

  /** The syncs of all clusters, in the order of calls. */
  constructor(syncs: readonly SyncOperation[]) {
    for (const sync of syncs) {
      const isCertain = succeeded(sync);
      if (!isCertain && !isUnknown(sync)) continue;
      for (const write of sync.writes) this.#enter(write, sync, isCertain);
    }
  }

  /** All that was written of a proxy, in order. */
  writes(uid: string): readonly Entered[] {
    return this.#byUid.get(uid) ?? [];
  }

  /** The machine that answers under this host; each has one of its own in a run. */
  machineAt(host: string): Machine | undefined {
    return this.#machines.get(host);
  }

  /** What the proxy may be at some moment of the span; null stands for "not there". */
  possible(uid: string, span: Span): readonly (Version | null)[] {
    const found = new Set<Version | null>();
    for (const write of this.possibleWrites(uid, span)) found.add(write?.version ?? null);
    return [...found];
  }

  /** The writes that may be in effect at some moment of the span, undefined for none at all. */
  possibleWrites(uid: string, span: Span): readonly (Entered | undefined)[] {
    const writes = this.writes(uid);
    const found: (Entered | undefined)[] = [];
    for (let index = lastCalledBy(writes, span.endMs); index >= 0; index--) {
      const write = writes[index];
      if (write === undefined) break;
      found.push(write);
      if (write.isCertain && write.endMs < span.calledMs) return found;
    }
    return [...found, undefined];
  }

  #enter({ uid, version }: Write, sync: SyncOperation, isCertain: boolean): void {
    const { calledMs, endMs } = sync;
    const entered: Entered = { calledMs, endMs, version, isCertain, sync };
    const writes = this.#byUid.get(uid);
    if (writes === undefined) this.#byUid.set(uid, [entered]);
    else writes.push(entered);
    if (version === null) return;
    const { host, instance } = version.entry;
    this.#machines.set(host, { uid, instance });
  }
}

/** Index of the last write that was called at `timeMs` or before; -1 for none. */
function lastCalledBy(writes: readonly Entered[], timeMs: number): number {
  let low = 0;
  let high = writes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((writes[middle]?.calledMs ?? Number.POSITIVE_INFINITY) <= timeMs) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
