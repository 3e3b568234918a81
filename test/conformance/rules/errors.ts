/** Errors, secrets and signals: rules that hold for every method. */
import { inspect } from 'node:util';
import { expect } from 'vitest';
import type { CreateRequest, Provider } from '#agent/providers/provider.ts';
import { failure, prompt, type Rule, strict, type World } from '../world.ts';

/** Nobody's ids, whatever form a provider gives its own. */
const MALFORMED_IDS = ['', '/', '//', ' ', '..', '../..', 'no\nid', 'a//b', '\u0000'];
const SENTINEL = 'sentinel-5e3c2f-of-user-data';
const EXPIRES_MS = 100;

export const ERROR_RULES: readonly Rule[] = [
  {
    title: 'a malformed id is Permanent to get, delete and disown',
    async run(world) {
      const { provider, signal } = world;
      for (const id of [...MALFORMED_IDS, ...world.backend.malformedIds]) {
        await failure(provider.get(id, signal), 'Permanent');
        await failure(provider.delete(id, signal), 'Permanent');
        await failure(provider.disown(id, signal), 'Permanent');
      }
    },
  },
  {
    title: 'every error names the configured provider and the operation',
    async run(world) {
      const request = world.request();
      const refused = world.need(world.backend.refused, 'be cut off').call(world.backend);
      for (const [op, call] of callsOf(strict(refused), request, world)) {
        const error = await failure(call(world.signal), 'Transient');
        expect(error.message).toContain(`${world.provider.name}: ${op}: `);
      }
      expect(await world.backend.machines(request.name)).toEqual([]);
    },
  },
  {
    title: 'user-data is in no log line and in no error',
    async run(world) {
      const { provider, signal, backend } = world;
      const request = world.request({ cloudInit: `#cloud-config\npassword: ${SENTINEL}\n` });
      const id = await provider.create(request, signal);
      await provider.create(request, signal);
      const said: unknown[] = [await provider.get(id, signal), await provider.listByTag(signal)];
      const taken = world.request({ cloudInit: SENTINEL });
      await backend.makeUnmarked(taken.name);
      said.push(await failure(provider.create(taken, signal), 'Permanent'));
      const aborted = AbortSignal.abort(new Error('stop'));
      said.push(await failure(provider.create(request, aborted), 'Transient'));
      if (backend.refused !== undefined) {
        said.push(await failure(backend.refused().create(request, signal), 'Transient'));
      }
      await provider.delete(id, signal);
      said.push(...backend.logLines);
      expect(inspect(said, { depth: 20, showHidden: true })).not.toContain(SENTINEL);
    },
  },
  {
    title: 'a call whose signal is aborted already does nothing and is Transient',
    async run(world) {
      const request = world.request();
      const aborted = AbortSignal.abort(new Error('shutting down'));
      for (const [op, call] of callsOf(world.provider, request, world)) {
        await prompt(failure(call(aborted), 'Transient'), op);
      }
      expect(await world.backend.machines(request.name)).toEqual([]);
    },
  },
  {
    title: 'a call to a backend that never answers ends promptly with its signal',
    async run(world) {
      const request = world.request();
      const silent = world.need(world.backend.silent, 'keep silent');
      const provider = strict(silent.call(world.backend));
      for (const [op, call] of callsOf(provider, request, world)) {
        const expired = AbortSignal.timeout(EXPIRES_MS);
        await prompt(failure(call(expired), 'Transient'), op);
      }
    },
  },
];

/** Each method of the contract, with what it takes besides a signal. */
function callsOf(
  provider: Provider,
  request: CreateRequest,
  world: World,
): [string, (signal: AbortSignal) => Promise<unknown>][] {
  const id = world.backend.idOf(request.name);
  return [
    ['create', (signal) => provider.create(request, signal)],
    ['get', (signal) => provider.get(id, signal)],
    ['delete', (signal) => provider.delete(id, signal)],
    ['disown', (signal) => provider.disown(id, signal)],
    ['list', (signal) => provider.listByTag(signal)],
  ];
}
