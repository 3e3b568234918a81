import { describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { FakeClock } from '#test/fakes/clock.ts';

describe('the stepped clock', () => {
  it('fires timers in the order of their due times, first come first served', async () => {
    const clock = new FakeClock();
    const fired: string[] = [];
    clock.setTimer(() => fired.push('late'), 20);
    clock.setTimer(() => fired.push('early, first'), 10);
    clock.setTimer(() => fired.push('early, second'), 10);
    await clock.advance(15);
    expect(fired).toEqual(['early, first', 'early, second']);
    await clock.advance(5);
    expect(fired).toEqual(['early, first', 'early, second', 'late']);
  });

  it('shows each timer its own due time and ends at the target time', async () => {
    const clock = new FakeClock(1_000);
    const seen: number[] = [];
    clock.setTimer(() => {
      seen.push(clock.now());
      clock.setTimer(() => seen.push(clock.now()), 5);
    }, 10);
    await clock.advance(100);
    expect(seen).toEqual([1_010, 1_015]);
    expect(clock.now()).toBe(1_100);
  });

  it('never fires a cancelled timer', async () => {
    const clock = new FakeClock();
    let fired = false;
    const timer = clock.setTimer(() => {
      fired = true;
    }, 1);
    timer.cancel();
    timer.cancel();
    await clock.advance(10);
    expect(fired).toBe(false);
    expect(clock.pendingTimers).toBe(0);
  });

  it('wakes a sleeper that is aborted, with the reason of the signal, and leaves no timer', async () => {
    const clock = new FakeClock();
    const abort = new AbortController();
    const sleeping = clock.sleep(1_000, abort.signal);
    abort.abort(new Error('stopping'));
    await expect(sleeping).rejects.toThrow('stopping');
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('the system clock', () => {
  it('rejects a sleep whose signal was aborted before', async () => {
    const reason = new Error('gone');
    await expect(systemClock.sleep(1_000_000, AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  it('does not fire a timer at once whose delay is longer than the platform takes', async () => {
    let fired = false;
    const timer = systemClock.setTimer(() => {
      fired = true;
    }, 2 ** 40);
    await systemClock.sleep(5);
    timer.cancel();
    expect(fired).toBe(false);
  });
});
