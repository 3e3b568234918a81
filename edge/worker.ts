/** Entry of the Worker: the HTTP application in front, the ledger's Durable Objects behind. */
import { waitUntil } from 'cloudflare:workers';
import { systemClock } from '#shared/clock.ts';
import { createApp } from './app.ts';
import { type Bindings, readSettings } from './env.ts';
import { createLog } from './http/log.ts';
import { shardStub } from './object/rpc.ts';

export { LedgerObject } from './object/ledger-object.ts';

/** 128 bits in base64url, which has no dot. */
const TOKEN_BYTES = 16;

/** Made by the first request of an isolate, the settings being known from then on. */
let app: ReturnType<typeof createApp> | undefined;

export default {
  fetch(request, env, ctx) {
    app ??= createApp({
      settings: readSettings(env),
      shard: (index) => shardStub(env.LEDGER, index),
      log: createLog(systemClock),
      clock: systemClock,
      random: Math.random,
      randomToken,
      waitUntil,
    });
    return app.fetch(request, env, ctx);
  },
} satisfies ExportedHandler<Bindings>;

function randomToken(): string {
  return crypto
    .getRandomValues(new Uint8Array(TOKEN_BYTES))
    .toBase64({ alphabet: 'base64url', omitPadding: true });
}
