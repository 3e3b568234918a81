/**
 * The `Idempotency-Key` of a request for a lease. Key and request are told to the ledger as
 * digests: their length is bounded, and a client's keys are apart from those of the others.
 */
import type { Idempotency } from '#edge/object/rpc.ts';
import { type AcquireRequest, idempotencyKeySchema } from '#shared/wire/lease.ts';
import type { EdgeContext } from './context.ts';
import { invalidField } from './errors.ts';

export const IDEMPOTENCY_HEADER = 'Idempotency-Key';

/** Undefined when the request has no key. */
export async function readIdempotency(
  c: EdgeContext,
  client: string,
  request: AcquireRequest,
): Promise<Idempotency | undefined> {
  const given = c.req.header(IDEMPOTENCY_HEADER);
  if (given === undefined) return undefined;
  const parsed = idempotencyKeySchema.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw invalidField(IDEMPOTENCY_HEADER, issue?.message ?? 'is invalid');
  }
  const [key, body] = await Promise.all([
    digest(`${client}\n${parsed.data}`),
    digest(canonicalJson(request)),
  ]);
  return { key, body };
}

/** Without `waitSeconds`: how long a client would wait is no part of what it asks for. */
function canonicalJson({ waitSeconds: _, ...wish }: AcquireRequest): string {
  return JSON.stringify(wish, (_name, value: unknown) =>
    typeof value === 'object' && value !== null
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

async function digest(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return new Uint8Array(bytes).toBase64({ alphabet: 'base64url', omitPadding: true });
}
