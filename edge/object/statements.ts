/** The SQL that writes what has changed in the book. */
import type { Change, LeaseRow } from '#edge/ledger/model.ts';
import { ENDED, TOKEN_FLOOR } from './rows.ts';

/** Writes one change; the caller wraps all changes of a batch in one transaction. */
export function writeChange(sql: SqlStorage, change: Change): void {
  switch (change.kind) {
    case 'put-lease':
      putLease(sql, change.row);
      return;
    case 'release-lease': {
      const { cluster, uid, slot, ended } = change.row;
      sql.exec(
        'UPDATE slots SET ended = ? WHERE cluster = ? AND uid = ? AND slot = ?',
        ENDED.indexOf(ended),
        cluster,
        uid,
        slot,
      );
      return;
    }
    case 'delete-lease': {
      const { cluster, uid, slot, id } = change.row;
      const where = 'cluster = ? AND uid = ? AND slot = ? AND id = ?';
      sql.exec(`DELETE FROM slots WHERE ${where}`, cluster, uid, slot, id);
      return;
    }
    case 'delete-slots':
      sql.exec(
        `DELETE FROM slots WHERE cluster = ? AND uid = ?
           AND slot IN (SELECT value FROM json_each(?))`,
        change.cluster,
        change.uid,
        JSON.stringify(change.slots),
      );
      return;
    case 'put-agent': {
      const { row } = change;
      sql.exec(
        `REPLACE INTO agents
           (cluster, term, session, seq, basis, last_sync_ms, shards, next_shards, most_shards)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        row.cluster,
        row.term,
        row.session,
        row.seq,
        row.basis,
        row.lastSyncMs,
        row.shards,
        row.nextShards,
        row.mostShards,
      );
      return;
    }
    case 'put-proxy': {
      const { cluster, entry, held } = change.row;
      sql.exec(
        'REPLACE INTO proxies (cluster, uid, entry, held) VALUES (?, ?, ?, ?)',
        cluster,
        entry.uid,
        JSON.stringify(entry),
        JSON.stringify(held),
      );
      return;
    }
    case 'delete-proxy':
      sql.exec('DELETE FROM proxies WHERE cluster = ? AND uid = ?', change.cluster, change.uid);
      return;
    case 'put-cooldown': {
      const { egress, target, strikes, untilMs, pending } = change.row;
      sql.exec(
        `REPLACE INTO cooldowns (egress, target, strikes, until_ms, pending)
           VALUES (?, ?, ?, ?, ?)`,
        egress,
        target,
        strikes,
        untilMs,
        pending ? 1 : 0,
      );
      return;
    }
    case 'delete-cooldown': {
      const { egress, target } = change;
      sql.exec('DELETE FROM cooldowns WHERE egress = ? AND target = ?', egress, target);
      return;
    }
    case 'put-session': {
      const { key, cluster, uid, token } = change.row;
      sql.exec('REPLACE INTO sessions VALUES (?, ?, ?, ?)', key, cluster, uid, token);
      return;
    }
    case 'delete-session':
      sql.exec('DELETE FROM sessions WHERE key = ?', change.key);
      return;
    case 'put-passed':
      sql.exec('REPLACE INTO passed VALUES (?, ?)', change.row.key, change.row.untilMs);
      return;
    case 'delete-passed':
      sql.exec('DELETE FROM passed WHERE key = ?', change.key);
      return;
    case 'put-token-floor':
      sql.exec('REPLACE INTO figures VALUES (?, ?)', TOKEN_FLOOR, change.value);
      return;
    default:
      change satisfies never;
  }
}

function putLease(sql: SqlStorage, row: LeaseRow): void {
  sql.exec(
    'REPLACE INTO slots VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    row.cluster,
    row.uid,
    row.slot,
    row.id,
    row.token,
    row.client,
    row.instance,
    row.egress,
    row.target,
    row.idempotencyKey,
    row.idempotencyBody,
    row.ttlSeconds,
    row.grantedMs,
    row.expiresMs,
    ENDED.indexOf(row.ended),
  );
}
