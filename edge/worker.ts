/** Entry of the Worker: the HTTP application in front, the ledger's Durable Object behind. */
import { systemClock } from '#shared/clock.ts';
import { createApp } from './app.ts';
import { type Bindings, readSettings } from './env.ts';
import { createLog } from './http/log.ts';

export { LedgerObject } from './object/ledger-object.ts';

/** The one object that owns the fleet. */
const LEDGER_NAME = 'ledger-0';

/** Made by the first request of an isolate, the settings being known from then on. */
let app: ReturnType<typeof createApp> | undefined;

export default {
  fetch(request, env, ctx) {
    app ??= createApp({
      settings: readSettings(env),
      ledger: () => env.LEDGER.getByName(LEDGER_NAME),
      log: createLog(systemClock),
      clock: systemClock,
    });
    return app.fetch(request, env, ctx);
  },
} satisfies ExportedHandler<Bindings>;
