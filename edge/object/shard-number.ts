/** Which of the shards an object is. */
import { z } from 'zod';

const FIGURE = 'shard';
const rows = z.array(z.object({ value: z.number().int() }));

/**
 * From the object's name, `ledger-<shard>`. The name is not known wherever the object is woken by
 * its alarm, so it is written down the first time.
 */
export function shardNumber({ id, storage }: Pick<DurableObjectState, 'id' | 'storage'>): number {
  const { sql } = storage;
  const known = rows.parse(sql.exec('SELECT value FROM figures WHERE name = ?', FIGURE).toArray());
  const [row] = known;
  if (row !== undefined) return row.value;
  const [, digits] = /^ledger-(\d+)$/.exec(id.name ?? '') ?? [];
  const shard = Number(digits ?? 0);
  sql.exec('REPLACE INTO figures VALUES (?, ?)', FIGURE, shard);
  return shard;
}
