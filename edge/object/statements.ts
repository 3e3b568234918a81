/** The SQL of the ledger: the rows that the book reads at its start, and the ones it changes. */
import { z } from 'zod';
import type { Change, Snapshot } from '#edge/ledger/model.ts';
import { inventoryEntrySchema } from '#shared/wire/sync.ts';

const TOKEN_CEILING = 'token_ceiling';

/** Reads all that the ledger remembers; checked, as an older version may have written it. */
export function readSnapshot(sql: SqlStorage): Snapshot {
  return {
    agents: agentRows.parse(sql.exec('SELECT * FROM agents').toArray()),
    proxies: proxyRows.parse(sql.exec('SELECT cluster, entry FROM proxies').toArray()),
    uses: useRows.parse(sql.exec('SELECT cluster, uid, token FROM uses').toArray()),
    leases: leaseRows.parse(sql.exec('SELECT * FROM leases').toArray()),
    cooldowns: cooldownRows.parse(sql.exec('SELECT * FROM cooldowns').toArray()),
    tokenCeiling: tokenCeiling(sql),
  };
}

/** Writes one change; the caller wraps all changes of a request in one transaction. */
export function writeChange(sql: SqlStorage, change: Change): void {
  switch (change.kind) {
    case 'put-agent': {
      const { cluster, term, session, seq, basis, lastSyncMs } = change.row;
      sql.exec(
        'REPLACE INTO agents VALUES (?, ?, ?, ?, ?, ?)',
        cluster,
        term,
        session,
        seq,
        lastSyncMs,
        basis,
      );
      return;
    }
    case 'put-proxy': {
      const { cluster, entry } = change.row;
      const json = JSON.stringify(entry);
      sql.exec('REPLACE INTO proxies VALUES (?, ?, ?)', cluster, entry.uid, json);
      return;
    }
    case 'delete-proxy':
      sql.exec('DELETE FROM proxies WHERE cluster = ? AND uid = ?', change.cluster, change.uid);
      sql.exec('DELETE FROM uses WHERE cluster = ? AND uid = ?', change.cluster, change.uid);
      return;
    case 'put-use': {
      const { cluster, uid, token } = change.row;
      sql.exec('REPLACE INTO uses VALUES (?, ?, ?)', cluster, uid, token);
      return;
    }
    case 'put-lease':
      putLease(sql, change.row);
      return;
    case 'delete-lease':
      sql.exec('DELETE FROM leases WHERE id = ?', change.id);
      return;
    case 'put-cooldown': {
      const { egress, target, strikes, untilMs } = change.row;
      sql.exec('REPLACE INTO cooldowns VALUES (?, ?, ?, ?)', egress, target, strikes, untilMs);
      return;
    }
    case 'delete-cooldown': {
      const { egress, target } = change;
      sql.exec('DELETE FROM cooldowns WHERE egress = ? AND target = ?', egress, target);
      return;
    }
    case 'put-token-ceiling':
      sql.exec('REPLACE INTO figures VALUES (?, ?)', TOKEN_CEILING, change.value);
      return;
    default:
      change satisfies never;
  }
}

function putLease(sql: SqlStorage, row: Snapshot['leases'][number]): void {
  sql.exec(
    'REPLACE INTO leases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    row.id,
    row.token,
    row.cluster,
    row.uid,
    row.instance,
    row.egress,
    row.target,
    row.ttlSeconds,
    row.grantedMs,
    row.expiresMs,
    row.gone ? 1 : 0,
  );
}

function tokenCeiling(sql: SqlStorage): number {
  const rows = sql.exec('SELECT value FROM figures WHERE name = ?', TOKEN_CEILING).toArray();
  return figureRows.parse(rows)[0]?.value ?? 0;
}

const integer = z.number().int();

const agentRows = z.array(
  z
    .object({
      cluster: z.string(),
      term: integer,
      session: z.string().nullable(),
      seq: integer,
      last_sync_ms: integer,
      basis: integer,
    })
    .transform(({ last_sync_ms: lastSyncMs, ...row }) => ({ ...row, lastSyncMs })),
);

const proxyRows = z.array(
  z.object({
    cluster: z.string(),
    entry: z
      .string()
      .transform((json): unknown => JSON.parse(json))
      .pipe(inventoryEntrySchema),
  }),
);

const useRows = z.array(z.object({ cluster: z.string(), uid: z.string(), token: integer }));

const leaseRows = z.array(
  z
    .object({
      id: z.string(),
      token: integer,
      cluster: z.string(),
      uid: z.string(),
      instance: z.string(),
      egress: z.string(),
      target: z.string().nullable(),
      ttl_seconds: integer,
      granted_ms: integer,
      expires_ms: integer,
      gone: integer.transform((flag) => flag === 1),
    })
    .transform(({ ttl_seconds, granted_ms, expires_ms, ...row }) => ({
      ...row,
      ttlSeconds: ttl_seconds,
      grantedMs: granted_ms,
      expiresMs: expires_ms,
    })),
);

const cooldownRows = z.array(
  z
    .object({ egress: z.string(), target: z.string(), strikes: integer, until_ms: integer })
    .transform(({ until_ms: untilMs, ...row }) => ({ ...row, untilMs })),
);

const figureRows = z.array(z.object({ value: integer }));
