import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type WorkerSpec, workerConfig } from '#deploy/local/edge/worker-config.ts';
import { startRuntime } from '#test/workerd/runtime.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'workerd-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** Counts its requests in storage, and tells the text that it was given. */
const COUNTER: WorkerSpec = {
  script: `
    import { DurableObject } from 'cloudflare:workers';
    export class Counter extends DurableObject {
      async next() {
        const count = ((await this.ctx.storage.get('count')) ?? 0) + 1;
        await this.ctx.storage.put('count', count);
        return count;
      }
    }
    export default {
      async fetch(request, env) {
        const count = await env.COUNTER.getByName('one').next();
        return Response.json({ count, text: env.TEXT });
      },
    };`,
  compatibilityDate: '2026-11-01',
  compatibilityFlags: [],
  texts: { TEXT: 'one=a"b\\c\ntwo=\u00fc\u20ac\t\u0001' },
  objects: [{ binding: 'COUNTER', className: 'Counter', key: 'counters' }],
};

const ask = async (url: string) => (await fetch(url)).json();

it('a runtime that is killed has another pid, the same port and all that it stored', async () => {
  const first = await startRuntime({ dir, worker: COUNTER });
  expect(await ask(first.url)).toEqual({ count: 1, text: COUNTER.texts['TEXT'] });
  await first.kill();
  expect(() => process.kill(first.pid, 0)).toThrow('ESRCH');
  const second = await first.restart();
  try {
    expect(second.port).toBe(first.port);
    expect(second.pid).not.toBe(first.pid);
    expect(await ask(second.url)).toMatchObject({ count: 2 });
    await expect(first.restart()).rejects.toThrow('in use');
  } finally {
    await second.stop();
  }
  expect(statSync(join(dir, 'config.capnp')).mode & 0o077).toBe(0);
});

it('says what is wrong with a Worker that does not start', async () => {
  const worker = { ...COUNTER, script: 'throw new Error("not today")' };
  await expect(startRuntime({ dir, worker })).rejects.toThrow('not today');
});

it('escapes what a text literal may not hold', () => {
  const config = workerConfig({ ...COUNTER, texts: { A: '"\\\n' } }, '/x');
  expect(config).toContain(String.raw`text = "\"\\\x0a"`);
});
