/** A Worker whose object does nothing: what the platform itself costs. */
import { DurableObject } from 'cloudflare:workers';
import { systemClock } from '#shared/clock.ts';
import { type Grant, proxyFacts } from '../answer.ts';
import { baselineApp, type Ledger } from '../baseline-app.ts';

interface Env {
  readonly LEDGER: DurableObjectNamespace<BenchObject>;
}

const GRANT: Grant = { id: '00000000-0000-4000-8000-000000000000', token: 1, proxy: proxyFacts(0) };

export class BenchObject extends DurableObject implements Ledger {
  async acquire(): Promise<Grant> {
    return GRANT;
  }

  async release(): Promise<void> {}
}

export default baselineApp<Env>((env) => env.LEDGER.getByName('ledger'), systemClock.now);
