/** The brake as a fleet meets it. */
import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { controllerObserver } from '#agent/telemetry/controller-observers.ts';
import { createLog } from '#agent/telemetry/log.ts';
import { createScrubber } from '#agent/telemetry/scrub.ts';
import { Fleet } from './fleet.ts';

async function fleetOf(count: number) {
  const registry = new Registry();
  const log = await createLog({ level: 'fatal', format: 'json', scrubber: createScrubber() });
  const fleet = new Fleet(count, controllerObserver(log, registry));
  await fleet.ready();
  expect(fleet.keys.every((key) => fleet.phase(key) === 'Ready')).toBe(true);
  fleet.events.length = 0;
  fleet.writes = 0;
  const gauge = async () => {
    const metric = registry.getSingleMetric('proxy_operator_replacements_held');
    return (await metric?.get())?.values.map(({ labels, value }) => [labels.provider, value]);
  };
  return { fleet, gauge };
}

const fail = {
  'are terminated': (fleet: Fleet, keys: string[]) => {
    for (const key of keys) fleet.machine(key).forced = 'Terminated';
  },
  vanish: (fleet: Fleet, keys: string[]) => {
    for (const key of keys) fleet.provider.machines.delete(fleet.machine(key).id);
  },
};

describe.each(Object.entries(fail))('machines that %s', (_how, kill) => {
  test('most of a fleet at once, are kept, and each says why once', async () => {
    const { fleet, gauge } = await fleetOf(20);
    const down = fleet.keys.slice(0, 12);
    kill(fleet, down);
    for (let round = 0; round < 5; round++) await fleet.round();
    expect(fleet.provider.made).toBe(20);
    for (const key of down) {
      expect(fleet.phase(key)).toBe('Unhealthy');
      expect(fleet.message(key, 'Healthy')).toMatch(/its replacement is held, since 11 of 20/);
    }
    const held = fleet.events.filter(({ reason }) => reason === 'ReplacementHeld');
    expect(held.map(({ regarding }) => `crawl/${regarding.name}`)).toEqual(down);
    // Down, and then held: two changes of each, whatever the number of rounds.
    expect(fleet.writes).toBe(24);
    expect(await gauge()).toEqual([['memory', 12]]);
  });

  test('are all replaced when the ten minutes are over', async () => {
    const { fleet, gauge } = await fleetOf(6);
    kill(fleet, fleet.keys);
    await fleet.round();
    await fleet.round(600_000);
    expect(fleet.provider.made).toBe(6);
    for (let round = 0; round < 6; round++) await fleet.round();
    expect(fleet.provider.made).toBe(12);
    expect(await gauge()).toEqual([['memory', 0]]);
  });

  test.each([1, 2, 3])('in a pool of %i are replaced at once', async (count) => {
    const { fleet } = await fleetOf(count);
    kill(fleet, fleet.keys);
    for (let round = 0; round < 6; round++) await fleet.round();
    expect(fleet.provider.made).toBe(2 * count);
  });

  test('are held by a new leader as well', async () => {
    const { fleet } = await fleetOf(10);
    kill(fleet, fleet.keys);
    await fleet.round();
    fleet.restart();
    for (let round = 0; round < 3; round++) await fleet.round();
    expect(fleet.provider.made).toBe(10);
  });

  test('are replaced when their user asks for it, held or not', async () => {
    const { fleet } = await fleetOf(10);
    kill(fleet, fleet.keys);
    for (let round = 0; round < 3; round++) await fleet.round();
    const [first = ''] = fleet.keys;
    fleet.edit(first, { port: 9000 });
    for (let round = 0; round < 6; round++) await fleet.round();
    expect(fleet.provider.made).toBe(11);
    expect(fleet.machine(first).request.port).toBe(9000);
  });
});

test('proxies that fail their probes together keep a dead one among them from being replaced', async () => {
  const { fleet } = await fleetOf(10);
  const verdict = { healthy: false, reason: 'Timeout', message: 'm', probedAtMs: 2 };
  for (const key of fleet.keys.slice(0, 6)) fleet.verdicts.set(key, verdict);
  await fleet.round();
  fail['are terminated'](fleet, fleet.keys.slice(0, 1));
  for (let round = 0; round < 3; round++) await fleet.round();
  expect(fleet.provider.made).toBe(10);
  for (const key of fleet.keys) {
    fleet.verdicts.set(key, { ...verdict, healthy: true, reason: 'Healthy', probedAtMs: 3 });
  }
  for (let round = 0; round < 6; round++) await fleet.round();
  expect(fleet.provider.made).toBe(11);
});
