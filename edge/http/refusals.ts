/** What the ledger refuses, as the errors of the contract. */

import type { RenewResult, ReportResult } from '#edge/object/rpc.ts';
import type { AcquireOutcome, CallRefusal } from '#edge/router/calls.ts';
import type { SyncOutcome } from '#edge/router/sync.ts';
import { ApiError, tryLater } from './errors.ts';

type Outcome = AcquireOutcome | RenewResult | ReportResult | SyncOutcome | CallRefusal;
export type Refusal = Extract<Outcome, { readonly ok: false }>;

export const REASONS = {
  unknown_lease: 'no such lease; it was released, or ended a while ago',
  lease_expired: 'the lease has expired; acquire a new one',
  proxy_gone: 'the proxy of the lease was removed or replaced; acquire a new lease',
  idempotency_mismatch: 'a live lease of this Idempotency-Key was asked for with another body',
} as const;

export function toError(refusal: Refusal): ApiError {
  switch (refusal.code) {
    case 'unknown_lease':
    case 'lease_expired':
    case 'proxy_gone':
    case 'idempotency_mismatch':
      return new ApiError(refusal.code, REASONS[refusal.code]);
    case 'no_match':
      return noMatch(refusal);
    case 'ttl_too_long': {
      const { maxTtlSeconds } = refusal;
      return new ApiError('ttl_too_long', `ttlSeconds: must be at most ${maxTtlSeconds}`, {
        fields: { field: 'ttlSeconds', maxTtlSeconds },
      });
    }
    case 'stale_term': {
      const { term } = refusal;
      return new ApiError('stale_term', `a newer leader took over, with term ${term}`, {
        fields: { term },
      });
    }
    case 'resync_required':
      return new ApiError('resync_required', `send a full sync: ${refusal.reason}`);
    case 'inventory_full':
      return new ApiError('inventory_full', `the ledger has no more room: ${refusal.reason}`);
    default:
      return later(refusal);
  }
}

type LaterCode =
  | 'too_many_leases'
  | 'too_many_requests'
  | 'queue_full'
  | 'overloaded'
  | 'passed_on'
  | 'noted'
  | 'cancelled'
  | 'reshape';

function later(refusal: Extract<Refusal, { readonly code: LaterCode }>): ApiError {
  switch (refusal.code) {
    case 'too_many_leases':
      return tryLater(
        'too_many_leases',
        'this token holds as many leases as it may; release some, or wait until one expires',
        refusal.retryAfterSeconds,
      );
    case 'too_many_requests':
      return tryLater(
        'too_many_requests',
        'this token has sent as many requests as it may; slow down',
        refusal.retryAfterSeconds,
      );
    case 'queue_full':
      return tryLater('queue_full', 'too many requests wait already', refusal.retryAfterSeconds);
    case 'overloaded': {
      const cause = 'cause' in refusal ? refusal.cause : undefined;
      return tryLater('overloaded', `the ledger is busy: ${refusal.reason}`, undefined, cause);
    }
    case 'cancelled':
      return tryLater('overloaded', 'the request was given up while it waited');
    case 'passed_on':
    case 'noted':
    case 'reshape':
      return tryLater('overloaded', 'the ledger is busy: the fleet is being divided anew');
  }
}

function noMatch({ noMatch, withheld }: Extract<Refusal, { code: 'no_match' }>): ApiError {
  const { considered, atCapacity, inCooldown, unhealthy, retryAfterSeconds } = noMatch;
  const counts = [
    `${considered} considered`,
    `${atCapacity} at capacity`,
    `${inCooldown} in cooldown`,
    `${unhealthy} unhealthy`,
    ...(withheld > 0 ? [`${withheld} more cordoned or draining`] : []),
  ];
  return new ApiError('no_match', `no proxy is free: ${counts.join(', ')}`, {
    fields: noMatch,
    headers: retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
  });
}
