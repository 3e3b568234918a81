/** A Worker whose object writes one row for each request, and does no more. */
import { DurableObject } from 'cloudflare:workers';
import { systemClock } from '#shared/clock.ts';
import { type Grant, proxyFacts, type Wish } from '../answer.ts';
import { baselineApp, type Ledger } from '../baseline-app.ts';

interface Env {
  readonly LEDGER: DurableObjectNamespace<BenchObject>;
}

const PROXY = proxyFacts(0);

export class BenchObject extends DurableObject implements Ledger {
  #token = 0;

  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(ctx, env);
    ctx.storage.sql.exec(`CREATE TABLE IF NOT EXISTS leases (
      id TEXT PRIMARY KEY, token INTEGER NOT NULL, proxy TEXT NOT NULL, target TEXT,
      expires_ms INTEGER NOT NULL) WITHOUT ROWID`);
  }

  async acquire({ target, ttlSeconds }: Wish): Promise<Grant> {
    const id = crypto.randomUUID();
    const token = ++this.#token;
    const expiresMs = systemClock.now() + ttlSeconds * 1000;
    const row = [id, token, PROXY.name, target ?? null, expiresMs];
    this.ctx.storage.sql.exec('INSERT INTO leases VALUES (?, ?, ?, ?, ?)', ...row);
    return { id, token, proxy: PROXY };
  }

  async release(id: string): Promise<void> {
    this.ctx.storage.sql.exec('DELETE FROM leases WHERE id = ?', id);
  }
}

export default baselineApp<Env>((env) => env.LEDGER.getByName('ledger'), systemClock.now);
