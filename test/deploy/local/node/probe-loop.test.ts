import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { type Probe, parsePod } from '#deploy/local/node/pod.ts';
import { judge, networkAttempt, probeLoop } from '#deploy/local/node/probe-loop.ts';
import { FakeClock } from '#test/fakes/clock.ts';

function container(probe: object, ports: object[] = []) {
  const pod = parsePod({
    metadata: { name: 'p', namespace: 'default', uid: 'u' },
    spec: { containers: [{ name: 'c', image: 'i', ports, readinessProbe: probe }] },
  } as never);
  const found = pod?.spec.containers[0];
  if (found?.readinessProbe === undefined) throw new Error('no probe');
  return { container: found, probe: found.readinessProbe };
}

it.each([
  [true, 0, false, { ok: true, streak: 1 }],
  [true, 1, false, { ok: false, streak: 0 }],
  [true, 1, true, { ok: true, streak: 0 }],
  [false, 0, true, { ok: false, streak: 1 }],
  [false, 2, true, { ok: true, streak: 0 }],
  [false, 2, false, { ok: false, streak: 0 }],
])('from ok=%s after %i contrary results, %s leads to %j', (ok, streak, success, next) => {
  const thresholds = { successThreshold: 3, failureThreshold: 2 };
  expect(judge(thresholds, { ok, streak }, success)).toEqual(next);
});

it('tells each change once and stops when told to', async () => {
  const clock = new FakeClock();
  const { probe } = container({ tcpSocket: { port: 1 }, periodSeconds: 1, failureThreshold: 2 });
  const results = [false, true, true, false, false, true];
  const told: boolean[] = [];
  const stopping = new AbortController();
  const attempt = async () => results.shift() ?? true;
  const running = probeLoop(
    { clock, attempt },
    probe,
    false,
    (ok) => told.push(ok),
    stopping.signal,
  );
  await clock.advance(10_000);
  expect(told).toEqual([true, false, true]);
  stopping.abort();
  await running;
  expect(clock.pendingTimers).toBe(0);
});

it('waits for the initial delay', async () => {
  const clock = new FakeClock();
  const { probe } = container({ tcpSocket: { port: 1 }, initialDelaySeconds: 10 });
  let attempts = 0;
  const stopping = new AbortController();
  const attempt = async () => ++attempts > 0;
  const running = probeLoop({ clock, attempt }, probe, true, () => {}, stopping.signal);
  await clock.advance(9_999);
  expect(attempts).toBe(0);
  await clock.advance(1);
  expect(attempts).toBe(1);
  stopping.abort();
  await running;
});

async function attemptOn(probe: object, ports: object[] = []): Promise<boolean> {
  const made = container(probe, ports);
  const attempt = networkAttempt('127.0.0.1', made.container);
  return attempt(made.probe as Probe, new AbortController().signal);
}

it('connects by TCP, to a number or to a name of a port', async () => {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await expect(attemptOn({ tcpSocket: { port } })).resolves.toBe(true);
  const named = [{ name: 'proxy', containerPort: port }];
  await expect(attemptOn({ tcpSocket: { port: 'proxy' } }, named)).resolves.toBe(true);
  await expect(attemptOn({ tcpSocket: { port: 'other' } }, named)).resolves.toBe(false);
  await new Promise((resolve) => server.close(resolve));
  await expect(attemptOn({ tcpSocket: { port } })).resolves.toBe(false);
});

it.each([
  [204, true],
  [302, true],
  [404, false],
  [500, false],
])('an HTTP answer of %i is good: %s', async (status, good) => {
  const server = createHttpServer((_request, response) => response.writeHead(status).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await expect(attemptOn({ httpGet: { port, path: '/healthz' } })).resolves.toBe(good);
  await new Promise((resolve) => server.close(resolve));
});

it('a port that no port can be is a failed attempt', async () => {
  await expect(attemptOn({ tcpSocket: { port: 70_000 } })).resolves.toBe(false);
  await expect(attemptOn({ tcpSocket: { port: 0 } })).resolves.toBe(false);
});
