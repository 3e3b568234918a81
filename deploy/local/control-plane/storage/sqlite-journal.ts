/**
 * Durable storage in one SQLite file. Each write is one transaction over the object and the
 * revision counter; WAL with `synchronous = NORMAL` survives the death of the process.
 */
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Journal } from './journal.ts';
import type { ObjectRef } from './object-store.ts';

const SCHEMA_VERSION = 1;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS objects (
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    object TEXT NOT NULL,
    PRIMARY KEY (resource, namespace, name)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS counter (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    revision INTEGER NOT NULL
  ) STRICT;
  INSERT OR IGNORE INTO counter (id, revision) VALUES (1, 0);
`;

/** Secrets are in it; the files that SQLite lays beside it take over its mode. */
const OWNER_ONLY = 0o600;

/**
 * Opens or creates the database at `path`; throws when it belongs to a newer version or to another
 * process: two writers would hand out the same revisions.
 */
export function openSqliteJournal(path: string): Journal {
  closeSync(openSync(path, 'a', OWNER_ONLY));
  const database = new DatabaseSync(path);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;');
    database.exec('PRAGMA synchronous = NORMAL;');
    migrate(database, path);
    return new SqliteJournal(database);
  } catch (error) {
    database.close();
    if (!isLocked(error)) throw error;
    const message = `${path} is in use by another process; stop it or choose another directory`;
    throw new Error(message, { cause: error });
  }
}

const SQLITE_BUSY = 5;

function isLocked(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}

function migrate(database: DatabaseSync, path: string): void {
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version ?? 0);
  if (version > SCHEMA_VERSION) {
    throw new Error(`${path} was written by a newer version (schema ${version}); remove it`);
  }
  database.exec(`BEGIN; ${SCHEMA} PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
}

class SqliteJournal implements Journal {
  readonly #database: DatabaseSync;
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #count: StatementSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#put = database.prepare('INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)');
    this.#remove = database.prepare(
      'DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?',
    );
    this.#count = database.prepare('UPDATE counter SET revision = ? WHERE id = 1');
  }

  *load(): Iterable<{ ref: ObjectRef; object: JsonObject }> {
    for (const row of this.#database.prepare('SELECT * FROM objects').iterate()) {
      const [resource, namespace, name] = [row.resource, row.namespace, row.name].map(String);
      const object: JsonValue = JSON.parse(String(row.object));
      if (!isJsonObject(object)) throw new Error(`${resource} ${name} is stored damaged`);
      yield {
        ref: { resource: `${resource}`, namespace: `${namespace}`, name: `${name}` },
        object,
      };
    }
  }

  revision(): number {
    return Number(this.#database.prepare('SELECT revision FROM counter').get()?.revision ?? 0);
  }

  put(ref: ObjectRef, object: JsonObject, revision: number): void {
    this.#transaction(revision, () =>
      this.#put.run(ref.resource, ref.namespace, ref.name, JSON.stringify(object)),
    );
  }

  remove(ref: ObjectRef, revision: number): void {
    this.#transaction(revision, () => this.#remove.run(ref.resource, ref.namespace, ref.name));
  }

  close(): void {
    this.#database.close();
  }

  #transaction(revision: number, write: () => void): void {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      write();
      this.#count.run(revision);
      this.#database.exec('COMMIT');
    } catch (error) {
      // A full disk, for one, has ended the transaction: then a ROLLBACK fails and hides the cause.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
  }
}
