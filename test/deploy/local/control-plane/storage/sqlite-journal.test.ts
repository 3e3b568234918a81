import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ObjectStore } from '#deploy/local/control-plane/storage/object-store.ts';
import { openSqliteJournal } from '#deploy/local/control-plane/storage/sqlite-journal.ts';

const ref = (name: string) => ({ resource: 'things', namespace: 'default', name });
const thing = (name: string) => ({ metadata: { name, namespace: 'default' } });

describe('the SQLite journal', () => {
  let folder = '';
  let path = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'journal-'));
    path = join(folder, 'objects.db');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('gives objects and the revision back after a restart', () => {
    const first = new ObjectStore({ journal: openSqliteJournal(path) });
    first.put(ref('a'), thing('a'));
    const kept = first.put(ref('b'), thing('b'));
    first.remove(ref('a'));
    first.close();
    const second = new ObjectStore({ journal: openSqliteJournal(path) });
    expect(second.list('things')).toEqual([kept]);
    expect(second.revision).toBe(3);
    // Nothing that happened before the restart can be watched any more.
    expect(second.changesSince(2)).toBeUndefined();
    expect(second.put(ref('c'), thing('c'))).toMatchObject({ metadata: { resourceVersion: '4' } });
    second.close();
  });

  it('keeps what was written when the process dies without closing', () => {
    const journal = openSqliteJournal(path);
    new ObjectStore({ journal }).put(ref('a'), thing('a'));
    // What is on the disk at this moment is what a crash would leave.
    const left = join(folder, 'left.db');
    copyFileSync(path, left);
    copyFileSync(`${path}-wal`, `${left}-wal`);
    const other = new ObjectStore({ journal: openSqliteJournal(left) });
    expect(other.list('things')).toHaveLength(1);
    expect(other.revision).toBe(1);
    other.close();
    journal.close();
  });

  it('changes nothing in memory when it cannot write', () => {
    const journal = openSqliteJournal(path);
    const store = new ObjectStore({ journal });
    journal.close();
    expect(() => store.put(ref('a'), thing('a'))).toThrow();
    expect(store.get(ref('a'))).toBeUndefined();
    expect(store.revision).toBe(0);
  });

  it('names the cause when the database itself has ended the transaction', () => {
    openSqliteJournal(path).close();
    const database = new DatabaseSync(path);
    database.exec(`CREATE TRIGGER full BEFORE INSERT ON objects WHEN NEW.name = 'a'
      BEGIN SELECT RAISE(ROLLBACK, 'the disk is full'); END`);
    database.close();
    const store = new ObjectStore({ journal: openSqliteJournal(path) });
    expect(() => store.put(ref('a'), thing('a'))).toThrow('the disk is full');
    expect(store.put(ref('b'), thing('b'))).toMatchObject({ metadata: { resourceVersion: '1' } });
    store.close();
  });

  it('refuses a file of a newer version by its path', () => {
    const database = new DatabaseSync(path);
    database.exec('PRAGMA user_version = 99');
    database.close();
    expect(() => openSqliteJournal(path)).toThrow(`${path} was written by a newer version`);
  });
});
