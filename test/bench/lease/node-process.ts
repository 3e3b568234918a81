/**
 * A server in plain Node with another ledger behind it: `node-process.ts LEDGER PROXIES [WHERE]`.
 * It fills the ledger, listens, and tells its parent at which port.
 */
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { systemClock as clock } from '#shared/clock.ts';
import { baselineApp, type Ledger } from './baseline-app.ts';
import { openPostgres } from './ledgers/postgres.ts';
import { openRedis } from './ledgers/redis.ts';
import { openScan } from './ledgers/scan.ts';

/** Each opens its ledger, with the fleet filled in and partly used. */
const LEDGERS: Readonly<Record<string, (proxies: number, where: string) => Promise<Ledger>>> = {
  postgres: openPostgres,
  redis: openRedis,
  scan: openScan,
};

const [name = '', proxies = '', where = ''] = process.argv.slice(2);
const ledger = await LEDGERS[name]?.(Number(proxies), where);
if (ledger === undefined) throw new Error(`no ledger "${name}"`);
const app = baselineApp(() => ledger, clock.now);
const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, () => {
  process.send?.({ port: (server.address() as AddressInfo).port });
});
process.once('disconnect', () => process.exit(0));
