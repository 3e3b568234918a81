/** The operations of a run, put together by the lease that they are about. */
import {
  type AcquireOperation,
  answerOf,
  type History,
  isUnknown,
  type LeaseOperation,
  type Operation,
  type SeenLease,
  type Span,
  type SyncOperation,
} from '../history.ts';
import { Inventory, type Machine } from './inventory.ts';

/** All that a run saw of one lease. */
export interface Story {
  readonly leaseID: string;
  /** As it was first answered. */
  readonly lease: SeenLease;
  readonly machine: Machine;
  /** Every acquire that was answered with it, in the order of answers. */
  readonly answered: readonly [AcquireOperation, ...AcquireOperation[]];
  /** Acquires of the same key that got no answer: one of them may have made it. */
  readonly lost: readonly AcquireOperation[];
  /** When it was granted: from the first request that can have made it to the first answer. */
  readonly grant: Span;
  /** In the order of calls. */
  readonly operations: readonly LeaseOperation[];
}

/** A run as the rules look at it. */
export interface Digest {
  readonly history: History;
  readonly inventory: Inventory;
  readonly syncs: readonly SyncOperation[];
  readonly acquires: readonly AcquireOperation[];
  readonly stories: ReadonlyMap<string, Story>;
  /** Answered acquires of a machine that no agent ever declared. */
  readonly unplaced: readonly AcquireOperation[];
}

/** Puts the operations of a run together. */
export function digestOf(history: History): Digest {
  const syncs = history.operations.filter((operation) => operation.kind === 'sync');
  const acquires = history.operations.filter((operation) => operation.kind === 'acquire');
  const inventory = new Inventory(syncs);
  const operations = Map.groupBy(history.operations.filter(isOnLease), (one) => one.leaseID);
  const granted = Map.groupBy(
    acquires.filter((acquire) => leaseOf(acquire) !== undefined),
    (acquire) => leaseOf(acquire)?.leaseID ?? '',
  );
  const lostByKey = Map.groupBy(acquires.filter(isUnknown), ({ key }) => key);
  const stories = new Map<string, Story>();
  const unplaced: AcquireOperation[] = [];
  for (const [leaseID, answers] of granted) {
    const [first, ...others] = answers.toSorted((a, b) => a.endMs - b.endMs);
    const lease = first && leaseOf(first);
    const machine = lease && inventory.machineAt(lease.proxy.host);
    if (first === undefined || lease === undefined) continue;
    if (machine === undefined) {
      unplaced.push(first);
      continue;
    }
    const sameKey = first.key === undefined ? [] : (lostByKey.get(first.key) ?? []);
    const lost = sameKey.filter((one) => one.calledMs <= first.endMs && one.body === first.body);
    const calledMs = Math.min(...[...answers, ...lost].map((one) => one.calledMs));
    stories.set(leaseID, {
      leaseID,
      lease,
      machine,
      answered: [first, ...others],
      lost,
      grant: { calledMs, endMs: first.endMs },
      operations: operations.get(leaseID) ?? [],
    });
  }
  return { history, inventory, syncs, acquires, stories, unplaced };
}

/** The lease that an acquire was answered with. */
export function leaseOf(acquire: AcquireOperation): SeenLease | undefined {
  const answer = answerOf(acquire);
  return answer?.status === 201 ? answer.lease : undefined;
}

/** All operations of a lease, in the order of calls. */
export function operationsOf({ answered, lost, operations }: Story): readonly Operation[] {
  return [...answered, ...lost, ...operations].toSorted((a, b) => a.id - b.id);
}

/** The operations that say how long the lease lives, as far as they were called by then. */
export function termsOf(story: Story, untilMs: number): readonly Operation[] {
  return operationsOf(story).filter(
    ({ kind, calledMs }) => kind !== 'get' && kind !== 'report' && calledMs <= untilMs,
  );
}

function isOnLease(operation: Operation): operation is LeaseOperation {
  return operation.kind !== 'sync' && operation.kind !== 'acquire';
}
