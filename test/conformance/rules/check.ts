/** Checker: one verdict for each target, always, and soon. */
import { expect } from 'vitest';
import type { Checker, TargetStatus } from '#agent/providers/provider.ts';
import type { TestedProvider } from '../backend.ts';
import { prompt, type Rule, type World } from '../world.ts';

const EXPIRES_MS = 100;

export const CHECK_RULES: readonly Rule[] = [
  {
    title: 'check of a backend that can be reached says so of each target, in a stable order',
    async run(world) {
      const checker = checkerOf(world, world.backend.newProvider());
      const statuses = await checker.check(world.signal);
      expect(statuses.length).toBeGreaterThan(0);
      expect(new Set(namesOf(statuses)).size).toBe(statuses.length);
      for (const status of statuses) {
        expect(status).toMatchObject({ ready: true, reason: 'Reachable' });
      }
      expect(namesOf(await checker.check(world.signal))).toEqual(namesOf(statuses));
    },
  },
  {
    title: 'check of a backend that cannot be reached fails each target, and not as a whole',
    async run(world) {
      const targets = namesOf(
        await checkerOf(world, world.backend.newProvider()).check(world.signal),
      );
      const refused = world.need(world.backend.refused, 'be cut off').call(world.backend);
      const statuses = await checkerOf(world, refused).check(world.signal);
      expect(namesOf(statuses)).toEqual(targets);
      for (const { ready, reason, message } of statuses) {
        expect({ ready, reason }).toEqual({ ready: false, reason: 'Unreachable' });
        expect(message).not.toBe('');
      }
    },
  },
  {
    title: 'check ends promptly with its signal, as a Timeout',
    async run(world) {
      const aborted = checkerOf(world, world.backend.newProvider()).check(AbortSignal.abort());
      isTimeout(await prompt(aborted, 'check'));
      const silent = world.need(world.backend.silent, 'keep silent').call(world.backend);
      const expired = checkerOf(world, silent).check(AbortSignal.timeout(EXPIRES_MS));
      isTimeout(await prompt(expired, 'check'));
    },
  },
  {
    title: 'check disturbs no other call',
    async run(world) {
      const provider = world.backend.newProvider();
      const checker = checkerOf(world, provider);
      const id = await provider.create(world.request(), world.signal);
      const stop = new AbortController();
      const [instance] = await Promise.all([
        (async () => {
          const checking = checker.check(stop.signal);
          const getting = provider.get(id, world.signal);
          stop.abort();
          await checking;
          return getting;
        })(),
        checker.check(world.signal),
      ]);
      expect(instance.id).toBe(id);
    },
  },
];

const namesOf = (statuses: readonly TargetStatus[]) => statuses.map(({ name }) => name);

function isTimeout(statuses: readonly TargetStatus[]): void {
  expect(statuses.length).toBeGreaterThan(0);
  for (const { ready, reason } of statuses) {
    expect({ ready, reason }).toEqual({ ready: false, reason: 'Timeout' });
  }
}

/** Checking is optional. */
function checkerOf(world: World, provider: TestedProvider): Checker {
  const { check } = provider;
  if (check === undefined) return world.skip('the provider has no check');
  return { check: check.bind(provider) };
}
