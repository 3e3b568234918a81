import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { watchOver } from '#deploy/local/edge-process.ts';
import type { Child } from '#deploy/local/process/child.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { eventually } from '#test/integration/eventually.ts';

const CHECK_MS = 2_000;

let clock: FakeClock;
let server: Server;
let url = '';
let healthy = false;
let checks = 0;
let stopped: number[] = [];
let child: Child | undefined;
let ending: AbortController;
let watching: Promise<void>;

beforeEach(async () => {
  clock = new FakeClock();
  healthy = false;
  checks = 0;
  stopped = [];
  ending = new AbortController();
  server = createServer((_request, response) => {
    checks++;
    response.writeHead(healthy ? 200 : 503).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/healthz`;
  child = childWith(1);
  watching = watchOver(clock, { supervisor: { current: () => child } }, url, ending.signal);
});
afterEach(async () => {
  ending.abort();
  await watching;
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function childWith(pid: number): Child {
  return {
    name: 'edge',
    pid,
    exited: new Promise(() => {}),
    async stop() {
      stopped.push(pid);
      child = childWith(pid + 1);
    },
  };
}

/** Lets `count` checks happen, one after the other. */
async function check(count: number): Promise<void> {
  for (let left = count; left > 0; left--) {
    const before = checks;
    await eventually(() => expect(clock.pendingTimers).toBeGreaterThan(0));
    await clock.advance(CHECK_MS);
    await eventually(() => expect(checks).toBe(before + 1));
  }
  await eventually(() => expect(clock.pendingTimers).toBeGreaterThan(0));
}

it('ends an edge that answered and then stays silent for three checks', async () => {
  healthy = true;
  await check(2);
  healthy = false;
  await check(2);
  expect(stopped).toEqual([]);
  await check(1);
  expect(stopped).toEqual([1]);
});

it('gives a new process the time of a start, and no more', async () => {
  healthy = true;
  await check(1);
  healthy = false;
  await check(3);
  expect(stopped).toEqual([1]);
  await check(29);
  expect(stopped).toEqual([1]);
  await check(1);
  expect(stopped).toEqual([1, 2]);
});
