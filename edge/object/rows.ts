/** Reads all that a shard remembers; checked, as an older version may have written it. */
import { z } from 'zod';
import type { LeaseRow, Snapshot } from '#edge/ledger/model.ts';
import { inventoryEntrySchema } from '#shared/wire/sync.ts';

/** How a lease's end is written down. */
export const ENDED: readonly LeaseRow['ended'][] = ['no', 'released', 'gone'];
export const TOKEN_FLOOR = 'token_floor';

export function readSnapshot(sql: SqlStorage): Snapshot {
  return {
    agents: agentRows.parse(sql.exec('SELECT * FROM agents').toArray()),
    proxies: proxyRows.parse(sql.exec('SELECT cluster, entry, held FROM proxies').toArray()),
    leases: leaseRows.parse(sql.exec('SELECT * FROM slots').toArray()),
    cooldowns: cooldownRows.parse(sql.exec('SELECT * FROM cooldowns').toArray()),
    sessions: sessionRows.parse(sql.exec('SELECT * FROM sessions').toArray()),
    passed: passedRows.parse(sql.exec('SELECT * FROM passed').toArray()),
    tokenFloor: tokenFloor(sql),
  };
}

function tokenFloor(sql: SqlStorage): number {
  const rows = sql.exec('SELECT value FROM figures WHERE name = ?', TOKEN_FLOOR).toArray();
  return figureRows.parse(rows)[0]?.value ?? 0;
}

const integer = z.number().int();
const flag = integer.transform((value) => value === 1);
const json = z.string().transform((text): unknown => JSON.parse(text));

const agentRows = z.array(
  z
    .object({
      cluster: z.string(),
      term: integer,
      session: z.string().nullable(),
      seq: integer,
      basis: integer,
      last_sync_ms: integer,
      shards: integer,
      next_shards: integer,
      most_shards: integer,
    })
    .transform(({ last_sync_ms, next_shards, most_shards, ...row }) => ({
      ...row,
      lastSyncMs: last_sync_ms,
      nextShards: next_shards,
      mostShards: most_shards,
    })),
);

const proxyRows = z.array(
  z.object({
    cluster: z.string(),
    entry: json.pipe(inventoryEntrySchema),
    held: json.pipe(z.array(z.object({ shard: integer, leases: integer }))),
  }),
);

const leaseRows = z.array(
  z
    .object({
      cluster: z.string(),
      uid: z.string(),
      slot: integer,
      id: z.string(),
      token: integer,
      client: z.string(),
      instance: z.string(),
      egress: z.string(),
      target: z.string().nullable(),
      idempotency_key: z.string().nullable(),
      idempotency_body: z.string().nullable(),
      ttl_seconds: integer,
      granted_ms: integer,
      expires_ms: integer,
      ended: integer,
    })
    .transform((row) => ({
      cluster: row.cluster,
      uid: row.uid,
      slot: row.slot,
      id: row.id,
      token: row.token,
      client: row.client,
      instance: row.instance,
      egress: row.egress,
      target: row.target,
      idempotencyKey: row.idempotency_key,
      idempotencyBody: row.idempotency_body,
      ttlSeconds: row.ttl_seconds,
      grantedMs: row.granted_ms,
      expiresMs: row.expires_ms,
      ended: ENDED[row.ended] ?? 'gone',
    })),
);

const cooldownRows = z.array(
  z
    .object({
      egress: z.string(),
      target: z.string(),
      strikes: integer,
      until_ms: integer,
      pending: flag,
    })
    .transform(({ until_ms: untilMs, ...row }) => ({ ...row, untilMs })),
);

const sessionRows = z.array(
  z.object({
    key: z.string(),
    cluster: z.string(),
    uid: z.string().nullable(),
    token: integer,
  }),
);

const passedRows = z.array(
  z
    .object({ key: z.string(), until_ms: integer })
    .transform(({ key, until_ms: untilMs }) => ({ key, untilMs })),
);

const figureRows = z.array(z.object({ value: integer }));
