import { describe, expect, it } from 'vitest';
import type { Change } from '#edge/ledger/model.ts';
import { GroupCommit } from '#edge/object/group-commit.ts';
import { FakeClock } from '#test/fakes/clock.ts';

const change = (key: string): Change => ({ kind: 'delete-passed', key });

function world() {
  const clock = new FakeClock();
  const log: string[] = [];
  const names = (changes: readonly Change[]) =>
    changes.map((one) => (one.kind === 'delete-passed' ? one.key : one.kind)).join();
  let fault: Error | undefined;
  const commits = new GroupCommit({
    clock,
    write(changes) {
      log.push(`write ${names(changes)}`);
      if (fault !== undefined) throw fault;
    },
    rollBack: () => void log.push('roll back'),
    written: (changes) => void log.push(`written ${names(changes)}`),
  });
  /** Notes when the promise settles. */
  const watch = (name: string, promise: Promise<void>) =>
    promise.then(
      () => void log.push(`${name} done`),
      (error: Error) => void log.push(`${name} failed: ${error.message}`),
    );
  const fail = (error?: Error) => {
    fault = error;
  };
  return { clock, log, commits, watch, fail };
}

describe('writes that arrive together', () => {
  it('share one transaction, and all wait for it', async () => {
    const { clock, log, commits, watch } = world();
    const all = [watch('a', commits.add([change('a')])), watch('b', commits.add([change('b')]))];
    await Promise.resolve();
    expect(log).toEqual([]);
    await clock.advance(0);
    await Promise.all(all);
    expect(log).toEqual(['write a,b', 'written a,b', 'a done', 'b done']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('hold back those who only look, until what they saw is written', async () => {
    const { clock, log, commits, watch } = world();
    await commits.settled();
    watch('a', commits.add([change('a')]));
    const look = watch('look', commits.settled());
    const nothing = watch('nothing', commits.add([]));
    await clock.advance(0);
    await Promise.all([look, nothing]);
    expect(log).toEqual(['write a', 'written a', 'a done', 'look done', 'nothing done']);
  });

  it('fail together, and nobody else: the next ones begin anew', async () => {
    const { clock, log, commits, watch, fail } = world();
    fail(new Error('disk full'));
    const lost = [watch('a', commits.add([change('a')])), watch('b', commits.add([change('b')]))];
    await clock.advance(0);
    await Promise.all(lost);
    fail();
    const next = watch('c', commits.add([change('c')]));
    await clock.advance(0);
    await next;
    expect(log).toEqual([
      'write a,b',
      'roll back',
      'a failed: disk full',
      'b failed: disk full',
      'write c',
      'written c',
      'c done',
    ]);
  });

  it('can be written at once, and then not again', async () => {
    const { clock, log, commits, watch } = world();
    const done = watch('a', commits.add([change('a')]));
    commits.flush();
    commits.flush();
    await done;
    await clock.advance(0);
    expect(log).toEqual(['write a', 'written a', 'a done']);
  });
});
