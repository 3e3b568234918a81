/** The in-memory provider of the controller's tests: held to the rules that it stands in for. */
import type { CreateRequest, Mark } from '#agent/providers/provider.ts';
import { systemClock } from '#shared/clock.ts';
import {
  type Machine,
  MemoryProvider,
  type MemoryProviderOptions,
} from '#test/fakes/memory-provider.ts';
import type { Backend } from './backend.ts';
import { CONFIGURED_NAME } from './world.ts';

const ZONE = 'a';
const SETTLE_MS_MAX = 5_000;
const SURROUNDINGS = { namespace: 'crawl', placement: { zone: ZONE }, port: 3128 };

export type MakeProvider = (options: MemoryProviderOptions) => MemoryProvider;

/** @param make the provider to test, which keeps its machines where it is told. */
export async function openMemoryBackend(
  make: MakeProvider = (options) => new MemoryProvider(options),
): Promise<Required<Backend>> {
  const machines = new Map<string, Machine>();
  const idOf = (name: string) => `zones/${ZONE}/${name}`;
  const newProvider = (options: MemoryProviderOptions = {}) =>
    make({ name: CONFIGURED_NAME, machines, polls: 2, nowMs: systemClock.now, ...options });

  function put(name: string, mark: Mark, more: Partial<Machine> = {}): string {
    const id = idOf(name);
    const request: CreateRequest = { name, ...mark, proxyName: 'theirs', ...SURROUNDINGS };
    const createdAtMs = systemClock.now();
    machines.set(id, { id, name, request, createdAtMs, ip: '10.9.9.9', startsIn: 0, ...more });
    return id;
  }

  return {
    surroundings: SURROUNDINGS,
    settleMsMax: SETTLE_MS_MAX,
    malformedIds: ['zones/a', 'zones/a/b/c', 'zones//b', 'zone/a/b', 'zones/A/b', '/zones/a/b'],
    logLines: [],
    idOf,
    newProvider: () => newProvider(),
    refused: () => failing(newProvider(), 'Transient'),
    exhausted: () => failing(newProvider(), 'QuotaExceeded'),
    silent: () => newProvider({ silent: true }),
    machines: async (name) =>
      [...machines.values()]
        .filter((machine) => machine.name === name)
        .map((machine) => JSON.stringify(machine)),
    secondary: async () => [],
    makeUnmarked: async (name) => put(name, { uid: '', installation: '' }, { disowned: true }),
    makeMarked: async (name, mark) => put(name, mark),
    makeUnknown: async (name, mark) => {
      const word = 'HIBERNATING';
      return { id: put(name, mark, { unknown: word }), word };
    },
    holdDeletion: async (id) => {
      const machine = machines.get(id);
      if (machine === undefined) throw new Error(`no machine ${id}`);
      machine.held = true;
      return async () => {
        machine.held = false;
      };
    },
    close: async () => {},
  };
}

function failing(
  provider: MemoryProvider,
  errorClass: 'Transient' | 'QuotaExceeded',
): MemoryProvider {
  for (const op of ['create', 'get', 'delete', 'disown', 'list'] as const) {
    provider.failNext(op, errorClass, Number.POSITIVE_INFINITY);
  }
  return provider;
}
