import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { electionObserver } from '#agent/telemetry/election-observers.ts';
import type { Log } from '#agent/telemetry/log.ts';

function setUp() {
  const lines: string[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const log: Log = {
    trace: () => {},
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
  };
  const registry = new Registry();
  const leader = () => registry.getSingleMetricAsString('proxy_operator_leader');
  return { observer: electionObserver(log, registry), lines, leader };
}

test('the gauge is 1 while this replica leads, and exists before it does', async () => {
  const { observer, leader } = setUp();
  expect(await leader()).toContain('proxy_operator_leader 0');
  observer.following('other');
  expect(await leader()).toContain('proxy_operator_leader 0');
  observer.becameLeader(7);
  expect(await leader()).toContain('proxy_operator_leader 1');
  observer.lost('frozen');
  expect(await leader()).toContain('proxy_operator_leader 0');
  observer.becameLeader(8);
  observer.released();
  expect(await leader()).toContain('proxy_operator_leader 0');
});

test('a server that stays away is a warning once in a row', () => {
  const { observer, lines } = setUp();
  observer.failed(new Error('away'), 1);
  observer.failed(new Error('away'), 2);
  observer.failed(new Error('away'), 1);
  expect(lines.map((line) => line.split(' ')[0])).toEqual(['warn', 'debug', 'warn']);
});

test('who leads, and why that ended, is in the log', () => {
  const { observer, lines } = setUp();
  observer.following('other');
  observer.becameLeader(7);
  observer.lost('the lease passed to z');
  expect(lines).toEqual([
    'info another replica leads, standing by {"holder":"other"}',
    'info this replica leads {"term":7}',
    'error leadership lost, acting no more {"reason":"the lease passed to z"}',
  ]);
});
