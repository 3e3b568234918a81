/**
 * What a run saw of the edge, from outside: every operation with the time of its call and of its
 * answer. Times are milliseconds of the run's own clock, which never jumps; the server's are moved
 * to it, which `History.slackMs` covers. UIDs are unique across clusters.
 */
import type { NoMatch } from '#shared/wire/errors.ts';
import type { AcquireRequest, Lease, ReportRequest } from '#shared/wire/lease.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';

/** An operation takes effect, if at all, at one moment from `calledMs` to `endMs`. */
export interface Span {
  readonly calledMs: number;
  /**
   * When it was answered. Of an operation without an answer, or with one of 5xx, the end of the
   * time in which it may still take effect: the kill that cut it, or Infinity.
   */
  readonly endMs: number;
}

/** A lease as an answer shows it. */
export interface SeenLease {
  readonly leaseID: string;
  readonly token: number;
  readonly proxy: Lease['proxy'];
  /** Normalised. */
  readonly target?: string | undefined;
  readonly expiresMs: number;
  /** The server's time when it made the answer. */
  readonly serverMs: number;
}

export interface Answer {
  readonly kind: 'answered';
  readonly status: number;
  /** Code of a refusal. */
  readonly code?: string | undefined;
  readonly hasRetryAfter?: boolean | undefined;
  readonly lease?: SeenLease | undefined;
  readonly noMatch?: NoMatch | undefined;
  /** Why the body is not one of the contract. */
  readonly malformed?: string | undefined;
}

/** Without an answer: `stray` when its connection broke while nobody killed the edge. */
export interface Lost {
  readonly kind: 'lost';
  readonly why: 'broken' | 'hung up' | 'stray';
}

export type Outcome = Answer | Lost;

interface Recorded extends Span {
  /** Unique; in the order of calls. */
  readonly id: number;
  readonly who: string;
  readonly outcome: Outcome;
}

export interface AcquireOperation extends Recorded {
  readonly kind: 'acquire';
  /** With the target normalised. */
  readonly request: AcquireRequest;
  /** Idempotency key. */
  readonly key?: string | undefined;
  /** As it was sent. */
  readonly body: string;
}

export interface GetOperation extends Recorded {
  readonly kind: 'get';
  readonly leaseID: string;
}

export interface RenewOperation extends Recorded {
  readonly kind: 'renew';
  readonly leaseID: string;
  readonly ttlSeconds: number;
}

export interface ReleaseOperation extends Recorded {
  readonly kind: 'release';
  readonly leaseID: string;
}

export interface ReportOperation extends Recorded {
  readonly kind: 'report';
  readonly leaseID: string;
  /** With the target normalised. */
  readonly report: ReportRequest;
}

/** One state of a proxy; a run makes each object once and writes it as often as it likes. */
export interface Version {
  readonly entry: InventoryEntry;
}

/** null: the proxy is removed. */
export interface Write {
  readonly uid: string;
  readonly version: Version | null;
}

export interface SyncOperation extends Recorded {
  readonly kind: 'sync';
  readonly cluster: string;
  /** For people: what kind of sync it was, and its `seq`. */
  readonly label: string;
  /** In the order in which they take effect. */
  readonly writes: readonly Write[];
  /** Active leases by UID, as answered; UIDs that are not named have none, unless partial. */
  readonly active?: Readonly<Record<string, number>> | undefined;
  readonly partial?: boolean | undefined;
  readonly serverMs?: number | undefined;
}

/** On one lease, by its id. */
export type LeaseOperation = GetOperation | RenewOperation | ReleaseOperation | ReportOperation;
export type Operation = AcquireOperation | LeaseOperation | SyncOperation;

/** From the signal that killed the edge to the moment at which it listened again. */
export interface Outage {
  readonly fromMs: number;
  /** The process was gone: nothing takes effect any more. */
  readonly deadMs: number;
  readonly toMs: number;
}

export interface History {
  /** In the order of calls. */
  readonly operations: readonly Operation[];
  readonly outages: readonly Outage[];
  readonly shards: number;
  readonly cooldownMs: number;
  readonly maxCooldownMs: number;
  /** How far the server's times may be off, and times that are compared with them. */
  readonly slackMs: number;
}

/** The answer, if there is one that tells what happened. */
export function answerOf(operation: { readonly outcome: Outcome }): Answer | undefined {
  const { outcome } = operation;
  return outcome.kind === 'answered' && outcome.status < 500 ? outcome : undefined;
}

/** Whether it is certain that the operation took effect. */
export function succeeded(operation: { readonly outcome: Outcome }): boolean {
  const status = answerOf(operation)?.status;
  return status !== undefined && status < 300;
}

/** Whether nobody can say if the operation took effect. */
export function isUnknown(operation: { readonly outcome: Outcome }): boolean {
  return answerOf(operation) === undefined;
}
