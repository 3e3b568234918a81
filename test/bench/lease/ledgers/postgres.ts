/**
 * PostgreSQL with a row for each lease that can be had, as one that is free is found by an index
 * alone: the row whose last lease ended first. Each request changes one row; an expired lease needs
 * no clearing away.
 */
import { Pool } from 'pg';
import { proxyFacts } from '../answer.ts';
import type { Ledger } from '../baseline-app.ts';
import { maxLeasesOf, USED_SHARE } from '../fleet.ts';

const CONNECTIONS = 16;
const FILL_PROXIES = 1_000;

const SCHEMA = `
CREATE TABLE proxies (proxy int PRIMARY KEY, facts jsonb NOT NULL);
CREATE SEQUENCE tokens CACHE 1;
CREATE TABLE slots (
  slot serial PRIMARY KEY,
  proxy int NOT NULL,
  ends_at timestamptz NOT NULL,
  lease uuid,
  token bigint,
  target text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX slots_by_end ON slots (ends_at);`;

const ACQUIRE = {
  name: 'acquire',
  text: `
WITH free AS MATERIALIZED (
  SELECT slot FROM slots WHERE ends_at <= now()
  ORDER BY ends_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE slots SET lease = $1, ends_at = now() + make_interval(secs => $2), target = $3,
  token = nextval('tokens')
FROM free, proxies
WHERE slots.slot = free.slot AND proxies.proxy = slots.proxy
RETURNING slots.slot, slots.token, proxies.facts`,
};

const RELEASE = {
  name: 'release',
  text: 'UPDATE slots SET lease = NULL, ends_at = now() WHERE slot = $1 AND lease = $2',
};

export async function openPostgres(proxies: number, socketFolder: string): Promise<Ledger> {
  const pool = new Pool({
    host: socketFolder,
    user: 'bench',
    database: 'postgres',
    max: CONNECTIONS,
    idleTimeoutMillis: 0,
  });
  await pool.query(SCHEMA);
  for (let first = 0; first < proxies; first += FILL_PROXIES) {
    await fill(pool, first, Math.min(first + FILL_PROXIES, proxies));
  }
  await pool.query(
    `UPDATE slots SET lease = gen_random_uuid(), ends_at = now() + interval '1 day'
     WHERE slot IN (SELECT min(slot) FROM slots WHERE proxy < $1 GROUP BY proxy)`,
    [proxies * USED_SHARE],
  );
  await pool.query('VACUUM ANALYZE');
  return {
    async acquire({ ttlSeconds, target = null }) {
      const lease = crypto.randomUUID();
      const { rows } = await pool.query({ ...ACQUIRE, values: [lease, ttlSeconds, target] });
      const [row] = rows;
      if (row === undefined) return undefined;
      return { id: `${row.slot}.${lease}`, token: Number(row.token), proxy: row.facts };
    },
    async release(id) {
      const dot = id.indexOf('.');
      await pool.query({ ...RELEASE, values: [id.slice(0, dot), id.slice(dot + 1)] });
    },
  };
}

async function fill(pool: Pool, first: number, end: number): Promise<void> {
  const numbers = Array.from({ length: end - first }, (_, offset) => first + offset);
  const facts = numbers.map((index) => JSON.stringify(proxyFacts(index)));
  await pool.query('INSERT INTO proxies SELECT * FROM unnest($1::int[], $2::jsonb[])', [
    numbers,
    facts,
  ]);
  const slots = numbers.flatMap((index) => Array(maxLeasesOf(index)).fill(index));
  await pool.query(
    `INSERT INTO slots (proxy, ends_at)
     SELECT proxy, now() - interval '1 day' + random() * interval '1 hour'
     FROM unnest($1::int[]) AS of (proxy)`,
    [slots],
  );
}
