/** An edge with settings of its own, in front of the real objects unless a test gives others. */
import { env } from 'cloudflare:workers';
import { type AppDeps, createApp } from '#edge/app.ts';
import { readSettings } from '#edge/env.ts';
import type { LogLevel } from '#edge/http/log.ts';
import { shardStub } from '#edge/object/rpc.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { type Send, senderTo } from './requests.ts';

export interface Line {
  readonly level: LogLevel;
  readonly msg: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface EdgeUnderTest {
  readonly send: Send;
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** All that was logged. */
  readonly lines: readonly Line[];
}

export function edgeWith(
  vars: Readonly<Record<string, string>>,
  overrides: Partial<AppDeps> = {},
): EdgeUnderTest {
  const lines: Line[] = [];
  let ids = 0;
  const app = createApp({
    settings: readSettings(vars),
    shard: (index) => shardStub(env.LEDGER, index),
    log: (level, msg, fields = {}) => void lines.push({ level, msg, fields }),
    clock: new FakeClock(),
    random: () => 0,
    randomToken: () => `${crypto.randomUUID()}-${ids++}`,
    waitUntil: () => {},
    ...overrides,
  });
  const fetch = (request: Request) => app.fetch(request);
  return { send: senderTo(fetch), fetch, lines };
}
