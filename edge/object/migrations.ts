/** The tables of the ledger, step by step. Steps are only ever added at the end. */

const STEPS: readonly string[] = [
  `CREATE TABLE agents (
     cluster TEXT NOT NULL PRIMARY KEY,
     term INTEGER NOT NULL,
     session TEXT,
     seq INTEGER NOT NULL,
     last_sync_ms INTEGER NOT NULL
   ) WITHOUT ROWID;
   CREATE TABLE proxies (
     cluster TEXT NOT NULL,
     uid TEXT NOT NULL,
     entry TEXT NOT NULL,
     PRIMARY KEY (cluster, uid)
   ) WITHOUT ROWID;
   CREATE TABLE uses (
     cluster TEXT NOT NULL,
     uid TEXT NOT NULL,
     token INTEGER NOT NULL,
     PRIMARY KEY (cluster, uid)
   ) WITHOUT ROWID;
   CREATE TABLE leases (
     id TEXT NOT NULL PRIMARY KEY,
     token INTEGER NOT NULL,
     cluster TEXT NOT NULL,
     uid TEXT NOT NULL,
     instance TEXT NOT NULL,
     egress TEXT NOT NULL,
     target TEXT,
     ttl_seconds INTEGER NOT NULL,
     granted_ms INTEGER NOT NULL,
     expires_ms INTEGER NOT NULL,
     gone INTEGER NOT NULL
   ) WITHOUT ROWID;
   CREATE TABLE cooldowns (
     egress TEXT NOT NULL,
     target TEXT NOT NULL,
     strikes INTEGER NOT NULL,
     until_ms INTEGER NOT NULL,
     PRIMARY KEY (egress, target)
   ) WITHOUT ROWID;
   CREATE TABLE figures (
     name TEXT NOT NULL PRIMARY KEY,
     value INTEGER NOT NULL
   ) WITHOUT ROWID;`,
  'ALTER TABLE agents ADD COLUMN basis INTEGER NOT NULL DEFAULT 0;',
  // Leases in slots of their proxies, whose rows are written over and not deleted; several shards.
  `CREATE TABLE slots (
     cluster TEXT NOT NULL,
     uid TEXT NOT NULL,
     slot INTEGER NOT NULL,
     id TEXT NOT NULL,
     token INTEGER NOT NULL,
     client TEXT NOT NULL,
     instance TEXT NOT NULL,
     egress TEXT NOT NULL,
     target TEXT,
     idempotency_key TEXT,
     idempotency_body TEXT,
     ttl_seconds INTEGER NOT NULL,
     granted_ms INTEGER NOT NULL,
     expires_ms INTEGER NOT NULL,
     ended INTEGER NOT NULL,
     PRIMARY KEY (cluster, uid, slot)
   ) WITHOUT ROWID;
   INSERT INTO slots
     SELECT cluster, uid, row_number() OVER (PARTITION BY cluster, uid ORDER BY token) - 1,
       id, token, 'default', instance, egress, target, NULL, NULL,
       ttl_seconds, granted_ms, expires_ms, CASE gone WHEN 1 THEN 2 ELSE 0 END
     FROM leases;
   DROP TABLE leases;
   DROP TABLE uses;
   UPDATE figures SET name = 'token_floor' WHERE name = 'token_ceiling';
   ALTER TABLE agents ADD COLUMN shards INTEGER NOT NULL DEFAULT 1;
   ALTER TABLE agents ADD COLUMN next_shards INTEGER NOT NULL DEFAULT 1;
   ALTER TABLE agents ADD COLUMN most_shards INTEGER NOT NULL DEFAULT 1;
   ALTER TABLE proxies ADD COLUMN held TEXT NOT NULL DEFAULT '[]';
   ALTER TABLE cooldowns ADD COLUMN pending INTEGER NOT NULL DEFAULT 0;
   CREATE TABLE sessions (
     key TEXT NOT NULL PRIMARY KEY,
     cluster TEXT NOT NULL,
     uid TEXT,
     token INTEGER NOT NULL
   ) WITHOUT ROWID;
   CREATE TABLE passed (
     key TEXT NOT NULL PRIMARY KEY,
     until_ms INTEGER NOT NULL
   ) WITHOUT ROWID;`,
];

/** Brings the tables to the newest step; repeating it does nothing. */
export function migrate(storage: DurableObjectStorage, nowMs: number): void {
  const { sql } = storage;
  sql.exec(
    `CREATE TABLE IF NOT EXISTS migrations (
       step INTEGER NOT NULL PRIMARY KEY, applied_ms INTEGER NOT NULL)`,
  );
  const { done } = sql.exec<{ done: number }>('SELECT count(*) AS done FROM migrations').one();
  STEPS.slice(done).forEach((statements, index) => {
    storage.transactionSync(() => {
      sql.exec(statements);
      sql.exec('INSERT INTO migrations (step, applied_ms) VALUES (?, ?)', done + index + 1, nowMs);
    });
  });
}
