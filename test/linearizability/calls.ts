/** The operations as requests over HTTP, each recorded; what the answers say is parsed here. */
import { errorBodySchema, noMatchSchema } from '#shared/wire/errors.ts';
import { type AcquireRequest, leaseSchema, type ReportRequest } from '#shared/wire/lease.ts';
import { normalizeTarget } from '#shared/wire/target.ts';
import type { Answered, Connection, Request } from './connection.ts';
import type { Answer, Outcome } from './history.ts';
import type { Recorder } from './recorder.ts';

export interface Keyed {
  readonly request: AcquireRequest;
  readonly key?: string | undefined;
  /** The client hangs up then. */
  readonly signal?: AbortSignal | undefined;
}

/** What became of a call; undefined: nobody listened. */
type Result = Promise<Outcome | undefined>;

/** One crawler's way to the edge. */
export interface Calls {
  acquire(call: Keyed): Result;
  get(leaseID: string): Result;
  renew(leaseID: string, ttlSeconds: number): Result;
  release(leaseID: string): Result;
  report(leaseID: string, report: ReportRequest): Result;
}

export interface CallsOptions {
  readonly connection: Connection;
  readonly recorder: Recorder;
  readonly token: string;
  readonly who: string;
}

export function createCalls({ connection, recorder, token, who }: CallsOptions): Calls {
  const authorization = `Bearer ${token}`;

  async function send(
    request: Omit<Request, 'headers'> & { readonly key?: string | undefined },
    note: (outcome: Outcome) => Parameters<Recorder['end']>[1],
  ): Result {
    const { key, ...rest } = request;
    const headers = { authorization, ...(key === undefined ? {} : { 'idempotency-key': key }) };
    const begun = recorder.begin();
    const reply = await connection.send({ ...rest, headers });
    if (reply.kind === 'unreached') return undefined;
    const why = request.signal?.aborted === true ? 'hung up' : 'broken';
    const outcome =
      reply.kind === 'lost' ? ({ kind: reply.kind, why } as const) : answerOf(reply, recorder);
    recorder.end(begun, note(outcome));
    return outcome;
  }

  return {
    acquire({ request, key, signal }) {
      const body = JSON.stringify(request);
      const wished = withHost(request);
      return send({ method: 'POST', path: '/v1/leases', body, key, signal }, (outcome) => ({
        kind: 'acquire',
        who,
        request: wished,
        key,
        body,
        outcome,
      }));
    },
    get(leaseID) {
      return send({ method: 'GET', path: pathOf(leaseID) }, (outcome) => ({
        kind: 'get',
        who,
        leaseID,
        outcome,
      }));
    },
    renew(leaseID, ttlSeconds) {
      const body = JSON.stringify({ ttlSeconds });
      return send({ method: 'POST', path: `${pathOf(leaseID)}/renew`, body }, (outcome) => ({
        kind: 'renew',
        who,
        leaseID,
        ttlSeconds,
        outcome,
      }));
    },
    release(leaseID) {
      return send({ method: 'DELETE', path: pathOf(leaseID) }, (outcome) => ({
        kind: 'release',
        who,
        leaseID,
        outcome,
      }));
    },
    report(leaseID, report) {
      const body = JSON.stringify(report);
      return send({ method: 'POST', path: `${pathOf(leaseID)}/report`, body }, (outcome) => ({
        kind: 'report',
        who,
        leaseID,
        report: withHost(report),
        outcome,
      }));
    },
  };
}

function pathOf(leaseID: string): string {
  return `/v1/leases/${encodeURIComponent(leaseID)}`;
}

function withHost<Body extends { readonly target?: string | undefined }>(body: Body): Body {
  const { target } = body;
  return target === undefined ? body : { ...body, target: normalizeTarget(target) };
}

function answerOf({ status, hasRetryAfter, body }: Answered, recorder: Recorder): Answer {
  const answer = { kind: 'answered', status, hasRetryAfter } as const;
  if (status === 204) return answer;
  if (status < 300) {
    const lease = leaseSchema.safeParse(body);
    if (!lease.success) return { ...answer, malformed: lease.error.message };
    const { leaseID, token, proxy, target, expiresAt, expiresInMs } = lease.data;
    const expiresMs = recorder.toRunMs(Date.parse(expiresAt));
    const serverMs = expiresMs - expiresInMs;
    return { ...answer, lease: { leaseID, token, proxy, target, expiresMs, serverMs } };
  }
  return { ...answer, ...refusalOf(body) };
}

/** What a refusal says, also to an agent. */
export function refusalOf(body: unknown): Pick<Answer, 'code' | 'noMatch' | 'malformed'> {
  const refusal = errorBodySchema.safeParse(body);
  if (!refusal.success) return { malformed: refusal.error.message };
  const code = refusal.data.error;
  if (code !== 'no_match') return { code };
  const noMatch = noMatchSchema.safeParse(body);
  return noMatch.success
    ? { code, noMatch: noMatch.data }
    : { code, malformed: noMatch.error.message };
}
