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
