import { afterEach, describe, expect, test } from 'vitest';
import { createHealthEngine, type Probe } from '#agent/health/engine.ts';
import type { ProbeTarget } from '#agent/health/targets.ts';
import type { ProbeResult } from '#agent/health/verdict.ts';
import { FakeClock, settle } from '#test/fakes/clock.ts';
import { targetWith } from './probe-target.ts';

const SECOND = 1000;
const success: ProbeResult = { ok: true, latencyMillis: 5 };
const failure: ProbeResult = { ok: false, reason: 'Timeout', message: 'm', latencyMillis: 5 };

const targetOf = (key: string, more: Partial<ProbeTarget> = {}) =>
  targetWith({ key, identity: `id ${key}`, ...more });

class Bench {
  readonly clock = new FakeClock();
  readonly targets = new Map<string, ProbeTarget>();
  readonly probes: { key: string; atMs: number }[] = [];
  readonly notices: string[] = [];
  readonly forgotten: string[] = [];
  readonly stop = new AbortController();
  answer: Probe = async () => success;
  random = () => 0.5;
  #running: Promise<void> | undefined;
  readonly #startMs = this.clock.now();

  readonly engine = createHealthEngine(
    {
      targets: { list: () => this.targets.values(), get: (key) => this.targets.get(key) },
      probe: async (target, signal) => {
        this.probes.push({ key: target.key, atMs: this.clock.now() - this.#startMs });
        return this.answer(target, signal);
      },
      clock: this.clock,
      random: () => this.random(),
      notify: (key) => void this.notices.push(key),
      observer: { probed: () => {}, forgotten: (key) => void this.forgotten.push(key) },
    },
    { concurrency: 4 },
  );

  set(key: string, more: Partial<ProbeTarget> = {}): void {
    this.targets.set(key, targetOf(key, more));
  }

  async start(): Promise<void> {
    this.#running = this.engine.run(this.stop.signal);
    await settle();
  }

  async end(): Promise<void> {
    this.stop.abort();
    await this.#running;
  }

  times(key: string): number[] {
    return this.probes.filter((each) => each.key === key).map((each) => each.atMs);
  }

  healthy(key: string): boolean | null | undefined {
    return this.engine.verdict(key)?.healthy;
  }
}

let bench: Bench;
afterEach(async () => {
  await bench.end();
  expect(bench.clock.pendingTimers).toBe(0);
});

describe('schedule', () => {
  test('a proxy that nobody probed is probed at once, then at its interval', async () => {
    bench = new Bench();
    bench.set('a', { intervalMs: 3 * SECOND });
    await bench.start();
    await bench.clock.advance(9 * SECOND);
    expect(bench.times('a')).toEqual([0, 3000, 6000, 9000]);
    expect(bench.healthy('a')).toBe(true);
    expect(bench.notices).toEqual(['a']);
  });

  test('a proxy with a verdict from before is first probed somewhere in its interval', async () => {
    bench = new Bench();
    const seed = { healthy: true, reason: 'Healthy', message: '', probedAtMs: 0 };
    bench.set('a', { seed });
    await bench.start();
    expect(bench.healthy('a')).toBe(true);
    await bench.clock.advance(16 * SECOND);
    expect(bench.times('a')).toEqual([5000, 15_000]);
  });

  test('intervals count from start to start, and a slow probe never overlaps itself', async () => {
    bench = new Bench();
    bench.set('a', { intervalMs: 2 * SECOND });
    let tookMs = 500;
    bench.answer = async (_target, signal) => {
      await bench.clock.sleep(tookMs, signal);
      return success;
    };
    await bench.start();
    await bench.clock.advance(4 * SECOND);
    expect(bench.times('a')).toEqual([0, 2000, 4000]);
    tookMs = 3000;
    await bench.clock.advance(6500);
    expect(bench.times('a').slice(3)).toEqual([6000, 9000]);
  });

  test('more proxies than places wait their turn, each of them once', async () => {
    bench = new Bench();
    for (let index = 0; index < 20; index++) bench.set(`p${index}`);
    let running = 0;
    let most = 0;
    bench.answer = async (_target, signal) => {
      most = Math.max(most, ++running);
      await bench.clock.sleep(100, signal);
      running--;
      return success;
    };
    await bench.start();
    await bench.clock.advance(SECOND);
    expect(most).toBe(4);
    expect(bench.probes).toHaveLength(20);
    expect(new Set(bench.probes.map((each) => each.key)).size).toBe(20);
  });

  test('1,000 known proxies spread over the interval, each probed once in it', async () => {
    bench = new Bench();
    const seed = { healthy: true, reason: 'Healthy', message: '', probedAtMs: 0 };
    for (let index = 0; index < 1000; index++) bench.set(`p${index}`, { seed });
    let counter = 0;
    bench.random = () => (counter++ % 1000) / 1000;
    await bench.start();
    await bench.clock.advance(30 * SECOND - 1);
    expect(bench.probes).toHaveLength(3000);
    const perSecond = Array.from({ length: 30 }, () => 0);
    for (const { atMs } of bench.probes) {
      const second = Math.floor(atMs / SECOND);
      perSecond[second] = (perSecond[second] ?? 0) + 1;
    }
    expect(new Set(perSecond)).toEqual(new Set([100]));
  });
});

describe('changes', () => {
  test('a proxy that appears is found at the next sync, or at once when asked for', async () => {
    bench = new Bench();
    await bench.start();
    bench.set('a');
    await bench.clock.advance(SECOND);
    expect(bench.times('a')).toEqual([1000]);
    bench.set('b');
    bench.engine.refresh('b');
    await settle();
    expect(bench.times('b')).toEqual([1000]);
  });

  test('a proxy that vanishes is forgotten, with its answer under way', async () => {
    bench = new Bench();
    bench.set('a');
    bench.answer = async (_target, signal) => {
      await bench.clock.sleep(2 * SECOND, signal);
      return success;
    };
    await bench.start();
    bench.targets.clear();
    await bench.clock.advance(5 * SECOND);
    expect(bench.healthy('a')).toBeUndefined();
    expect(bench.forgotten).toEqual(['a']);
    expect(bench.notices).toEqual([]);
    expect(bench.probes).toHaveLength(1);
  });

  test('another machine starts from nothing and is probed at once', async () => {
    bench = new Bench();
    bench.set('a');
    await bench.start();
    await bench.clock.advance(2500);
    bench.answer = async () => failure;
    bench.set('a', { identity: 'next' });
    bench.engine.refresh('a');
    expect(bench.healthy('a')).toBeNull();
    await settle();
    expect(bench.times('a')).toEqual([0, 2500]);
    expect(bench.healthy('a')).toBeNull();
  });

  test('whoever shows the verdict is told when it is void', async () => {
    bench = new Bench();
    bench.set('a');
    await bench.start();
    bench.notices.length = 0;
    bench.answer = (_target, signal) => bench.clock.sleep(1e6, signal).then(() => success);
    bench.set('a', { identity: 'next' });
    bench.engine.refresh('a');
    expect(bench.notices).toEqual(['a']);
  });

  test('a new interval holds at once, the verdict stays', async () => {
    bench = new Bench();
    bench.set('a', { intervalMs: 60 * SECOND });
    await bench.start();
    await bench.clock.advance(5 * SECOND);
    bench.set('a', { intervalMs: 2 * SECOND });
    await bench.clock.advance(5 * SECOND);
    expect(bench.times('a')).toEqual([0, 6000, 8000, 10_000]);
  });

  test('another question is asked at once; answers to the old one do not count', async () => {
    bench = new Bench();
    bench.set('a', { failureThreshold: 2 });
    await bench.start();
    bench.answer = async () => failure;
    await bench.clock.advance(10 * SECOND);
    bench.set('a', { failureThreshold: 2, url: 'http://other/' });
    bench.engine.refresh('a');
    await settle();
    expect(bench.times('a')).toEqual([0, 10_000, 10_000]);
    expect(bench.healthy('a')).toBe(true);
    await bench.clock.advance(10 * SECOND);
    expect(bench.healthy('a')).toBe(false);
  });

  test('a question that changes while it is asked is asked again at once', async () => {
    bench = new Bench();
    bench.set('a');
    bench.answer = async (_target, signal) => {
      await bench.clock.sleep(2 * SECOND, signal);
      return failure;
    };
    await bench.start();
    bench.set('a', { expectedStatus: 204 });
    bench.engine.refresh('a');
    await bench.clock.advance(2 * SECOND);
    expect(bench.times('a')).toEqual([0, 2000]);
    expect(bench.notices).toEqual([]);
  });

  test('a rotated password is tried at once', async () => {
    bench = new Bench();
    bench.set('a', { credentials: { username: 'u', password: '1' } });
    await bench.start();
    bench.set('a', { credentials: { username: 'u', password: '2' } });
    await bench.clock.advance(SECOND);
    expect(bench.times('a')).toEqual([0, 1000]);
  });
});

describe('verdicts', () => {
  test('the first failure of a healthy proxy is told; the verdict turns at the threshold', async () => {
    bench = new Bench();
    bench.set('a');
    await bench.start();
    bench.answer = async () => failure;
    bench.notices.length = 0;
    await bench.clock.advance(10 * SECOND);
    expect(bench.notices).toEqual(['a']);
    expect(bench.healthy('a')).toBe(true);
    await bench.clock.advance(20 * SECOND);
    expect(bench.notices).toEqual(['a', 'a']);
    expect(bench.engine.verdict('a')).toMatchObject({ healthy: false, reason: 'Timeout' });
  });

  test('an unhealthy proxy goes on being probed and recovers', async () => {
    bench = new Bench();
    bench.set('a', { failureThreshold: 1 });
    bench.answer = async () => failure;
    await bench.start();
    expect(bench.healthy('a')).toBe(false);
    bench.answer = async () => success;
    await bench.clock.advance(10 * SECOND);
    expect(bench.healthy('a')).toBe(true);
  });

  test('a bug in the probe fails a proxy and does not end its schedule', async () => {
    bench = new Bench();
    bench.set('a', { failureThreshold: 1 });
    bench.answer = async () => {
      throw new TypeError('bug');
    };
    await bench.start();
    expect(bench.engine.verdict('a')).toMatchObject({ healthy: false, reason: 'ProbeFailed' });
    await bench.clock.advance(10 * SECOND);
    expect(bench.times('a')).toEqual([0, 10_000]);
  });
});

test('stopping waits for the probes under way, which see the signal', async () => {
  bench = new Bench();
  bench.set('a');
  let ended = false;
  bench.answer = async (_target, signal) => {
    await bench.clock.sleep(60 * SECOND, signal).finally(() => {
      ended = true;
    });
    return success;
  };
  await bench.start();
  await bench.end();
  expect(ended).toBe(true);
  expect(bench.notices).toEqual([]);
});
