import { describe, expect, test } from 'vitest';
import {
  type CheckedProvider,
  createHealthMonitor,
  type MonitorOptions,
} from '#agent/provider-health/monitor.ts';
import type { HealthWriter } from '#agent/provider-health/writer.ts';
import type { TargetStatus } from '#agent/providers/provider.ts';
import { LeadershipLostError } from '#agent/runtime/leadership.ts';
import type { ProviderHealthStatus } from '#shared/crd/provider-health.ts';
import { FakeClock } from '#test/fakes/clock.ts';

const MINUTE_MS = 60_000;
const up: TargetStatus = { name: 'host', ready: true, reason: 'Reachable', message: '' };
const down = (reason: string): TargetStatus => ({
  name: 'host',
  ready: false,
  reason,
  message: '',
});

type Check = (signal: AbortSignal) => Promise<TargetStatus[]>;
const checked = (name: string, check: Check): CheckedProvider => ({
  name,
  type: 'kvm',
  checker: { check },
});

function setUp(providers: CheckedProvider[], options: Partial<MonitorOptions> = {}) {
  const clock = new FakeClock();
  const told: string[] = [];
  const rounds: string[] = [];
  const prunes: string[] = [];
  const objects = new Map<string, ProviderHealthStatus>();
  const state = { providers, writeError: undefined as unknown, pruneError: undefined as unknown };
  const writer: HealthWriter = {
    async write(name, report) {
      if (state.writeError !== undefined) throw state.writeError;
      objects.set(name, report(objects.get(name)));
    },
    async prune(keep) {
      prunes.push([...keep].join());
      if (state.pruneError !== undefined) throw state.pruneError;
      const stale = [...objects.keys()].filter((name) => !keep.has(name));
      for (const name of stale) objects.delete(name);
      return stale;
    },
  };
  const tell = (line: string) => void told.push(line);
  const monitor = createHealthMonitor(
    {
      providers: { checked: () => state.providers },
      writer,
      clock,
      observer: {
        checked: (provider, target, { durationMs }) =>
          void rounds.push(`${provider}/${target.name} ${target.ready} ${durationMs}`),
        targetDown: (provider, { name, reason }) => tell(`down ${provider}/${name} ${reason}`),
        targetUp: (provider, { name }) => tell(`up ${provider}/${name}`),
        targetGone: (provider, name) => tell(`gone ${provider}/${name}`),
        writeFailed: (provider, _error, failures) => tell(`write failed ${provider} ${failures}`),
        writeRecovered: (provider) => tell(`write recovered ${provider}`),
        pruned: (names) => tell(`pruned ${names.join()}`),
        pruneFailed: (_error, failures) => tell(`prune failed ${failures}`),
      },
    },
    { intervalMs: MINUTE_MS, timeoutMs: 15_000, ...options },
  );
  const stop = new AbortController();
  const start = () => monitor.run(stop.signal);
  return { clock, told, rounds, prunes, objects, state, monitor, stop, start };
}

/** Answers one verdict after the other, the last one for ever. */
function scripted(...verdicts: TargetStatus[]): Check {
  let nth = 0;
  return async () => [verdicts[Math.min(nth++, verdicts.length - 1)] ?? up];
}

describe('rounds', () => {
  test('begin at the start, follow at the interval, and end with the signal', async () => {
    const { clock, rounds, stop, start, objects } = setUp([checked('a', scripted(up))]);
    const done = start();
    await clock.advance(0);
    expect(rounds).toHaveLength(1);
    expect(objects.get('a')).toMatchObject({ ready: 'True', targets: '1/1' });
    await clock.advance(MINUTE_MS - 1);
    expect(rounds).toHaveLength(1);
    await clock.advance(1);
    expect(rounds).toHaveLength(2);
    stop.abort();
    await done;
    expect(clock.pendingTimers).toBe(0);
  });

  test('keep their rhythm when checks take time', async () => {
    const clockBox: { clock?: FakeClock } = {};
    const slow: Check = async () => {
      await clockBox.clock?.sleep(10_000);
      return [up];
    };
    const { clock, rounds, stop, start } = setUp([checked('a', slow)]);
    clockBox.clock = clock;
    const done = start();
    await clock.advance(2 * MINUTE_MS + 10_000);
    expect(rounds).toEqual(Array(3).fill('a/host true 10000'));
    stop.abort();
    await done;
  });

  test('ask all providers at once, and a provider that hangs delays no other', async () => {
    const hang: Check = () => new Promise(() => {});
    const { clock, objects, told, stop, start } = setUp([
      checked('hung', hang),
      checked('fine', scripted(up)),
    ]);
    const done = start();
    await clock.advance(0);
    expect([...objects.keys()]).toEqual(['fine']);
    await clock.advance(16_000);
    expect(objects.get('hung')).toMatchObject({
      ready: 'False',
      targetStatuses: [
        { name: 'hung', reason: 'Timeout', message: expect.stringContaining('15 s') },
      ],
    });
    await clock.advance(MINUTE_MS);
    expect(objects.get('hung')?.targetStatuses?.[0]?.message).toContain('earlier round');
    expect(told).toEqual(['down hung/hung Timeout']);
    stop.abort();
    await done;
    expect(clock.pendingTimers).toBe(0);
  });

  test('what an aborted check says of its targets in time is taken', async () => {
    const obedient: Check = (signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve([down('Timeout'), { ...up, name: 'b' }]));
      });
    const { clock, objects, stop, start } = setUp([checked('a', obedient)]);
    const done = start();
    await clock.advance(15_000);
    expect(objects.get('a')?.targets).toBe('1/2');
    stop.abort();
    await done;
  });

  test('a check that throws shows the targets it had as failed', async () => {
    let fails = false;
    const { clock, objects, stop, start } = setUp([
      checked('a', async () => {
        if (fails) throw new Error('a bug');
        return [up];
      }),
    ]);
    const done = start();
    await clock.advance(0);
    fails = true;
    await clock.advance(MINUTE_MS);
    expect(objects.get('a')?.targetStatuses).toMatchObject([
      { name: 'host', ready: false, reason: 'CheckFailed', message: 'a bug' },
    ]);
    stop.abort();
    await done;
  });

  test('a check that the stop cuts short changes nothing', async () => {
    const obedient: Check = (signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve([down('Timeout')]));
      });
    const { clock, objects, told, stop, start } = setUp([checked('a', obedient)]);
    const done = start();
    await clock.advance(1_000);
    stop.abort();
    await done;
    expect(objects.size).toBe(0);
    expect(told).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });

  test('a provider without a check is unsupported and has no gauges', async () => {
    const { clock, objects, rounds, told, stop, start } = setUp([{ name: 'm', type: 'memory' }]);
    const done = start();
    await clock.advance(MINUTE_MS);
    expect(objects.get('m')).toMatchObject({ ready: 'Unknown', reason: 'Unsupported' });
    expect([...rounds, ...told]).toEqual([]);
    stop.abort();
    await done;
  });
});

describe('what is told', () => {
  test('is changes alone: down, another reason, up', async () => {
    const script = scripted(up, up, down('Timeout'), down('Timeout'), down('Forbidden'), up, up);
    const { clock, told, stop, start } = setUp([checked('a', script)]);
    const done = start();
    await clock.advance(7 * MINUTE_MS);
    expect(told).toEqual(['down a/host Timeout', 'down a/host Forbidden', 'up a/host']);
    stop.abort();
    await done;
    expect(told.at(-1)).toBe('gone a/host');
  });

  test('a target that is down at the first check is told', async () => {
    const { clock, told, stop, start } = setUp([checked('a', scripted(down('Unauthorized')))]);
    const done = start();
    await clock.advance(MINUTE_MS);
    expect(told).toEqual(['down a/host Unauthorized']);
    stop.abort();
    await done;
  });

  test('a target that is not checked any more is gone', async () => {
    const { clock, told, stop, start } = setUp([
      checked('a', scripted({ ...up, name: 'old' }, up)),
    ]);
    const done = start();
    await clock.advance(MINUTE_MS);
    expect(told).toEqual(['gone a/old']);
    stop.abort();
    await done;
  });
});

describe('objects', () => {
  const stale: ProviderHealthStatus = { ready: 'True' };

  test('of providers that are not configured are deleted at the start', async () => {
    const { clock, objects, told, stop, start } = setUp([checked('a', scripted(up))]);
    objects.set('old', stale);
    const done = start();
    await clock.advance(0);
    expect([...objects.keys()]).toEqual(['a']);
    expect(told).toEqual(['pruned old']);
    stop.abort();
    await done;
  });

  test('follow a reload at once', async () => {
    const { clock, objects, told, prunes, state, monitor, stop, start } = setUp([
      checked('a', scripted(up)),
    ]);
    const done = start();
    await clock.advance(2 * MINUTE_MS + 1_000);
    expect(prunes).toEqual(['a']);
    state.providers = [checked('b', scripted(up))];
    monitor.refresh();
    await clock.advance(0);
    expect([...objects.keys()]).toEqual(['b']);
    expect(told).toEqual(['gone a/host', 'pruned a']);
    expect(prunes).toEqual(['a', 'b']);
    stop.abort();
    await done;
  });

  test('follow a reload in the middle of a round right after it', async () => {
    let finish = () => {};
    const slow: Check = () =>
      new Promise((resolve) => {
        finish = () => resolve([up]);
      });
    const { clock, objects, state, monitor, stop, start } = setUp([checked('a', slow)]);
    const done = start();
    await clock.advance(1_000);
    state.providers = [];
    monitor.refresh();
    await clock.advance(0);
    finish();
    await clock.advance(0);
    expect(objects.size).toBe(0);
    stop.abort();
    await done;
  });

  test('are all deleted when checks are off, and nothing is checked', async () => {
    const { clock, objects, rounds, told, state, stop, start } = setUp(
      [checked('a', scripted(up))],
      { intervalMs: 0 },
    );
    objects.set('a', stale);
    state.pruneError = new Error('API server away');
    const done = start();
    await clock.advance(MINUTE_MS);
    state.pruneError = undefined;
    await clock.advance(MINUTE_MS);
    expect(told).toEqual(['prune failed 1', 'prune failed 2', 'pruned a']);
    await clock.advance(10 * MINUTE_MS);
    expect(rounds).toEqual([]);
    expect(objects.size).toBe(0);
    stop.abort();
    await done;
    expect(clock.pendingTimers).toBe(0);
  });

  test('that cannot be written are tried again in the next round', async () => {
    const { clock, objects, told, state, stop, start } = setUp([checked('a', scripted(up))]);
    state.writeError = new Error('503');
    const done = start();
    await clock.advance(MINUTE_MS);
    expect(objects.size).toBe(0);
    state.writeError = undefined;
    await clock.advance(MINUTE_MS);
    expect(objects.get('a')?.ready).toBe('True');
    expect(told).toEqual(['write failed a 1', 'write failed a 2', 'write recovered a']);
    stop.abort();
    await done;
  });

  test('are not written without leadership, which is no failure of the write', async () => {
    const { clock, objects, told, state, stop, start } = setUp([checked('a', scripted(up))]);
    const lost = new LeadershipLostError('another process may lead');
    state.writeError = lost;
    state.pruneError = lost;
    const done = start();
    await clock.advance(MINUTE_MS);
    expect(objects.size).toBe(0);
    expect(told).toEqual([]);
    stop.abort();
    await done;
  });
});
