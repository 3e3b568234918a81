import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { checkProviders, openProviderFile } from '#agent/provider-file.ts';
import type { Provider } from '#agent/providers/provider.ts';
import { FakeClock } from '#test/fakes/clock.ts';

function text(...names: string[]): string {
  const entries = names.map(
    (name) => `  - { name: ${name}, type: kubernetes, kubernetes: { image: squid } }\n`,
  );
  return `providers:\n${entries.join('')}`;
}

function provider(name: string): Provider {
  return {
    name,
    type: 'kubernetes',
    create: () => Promise.resolve('id'),
    get: () => Promise.reject(new Error('not used')),
    delete: () => Promise.resolve(),
    disown: () => Promise.resolve(),
    listByTag: () => Promise.resolve([]),
  };
}

function setUp(file: { path: string; text: string } | undefined) {
  const clock = new FakeClock();
  const seen: string[] = [];
  const requests: string[] = [];
  const providers = openProviderFile({
    file,
    builders: { kubernetes: ({ name }) => provider(name), gcp: ({ name }) => provider(name) },
    clock,
    random: () => 0.5,
    observer: {
      reloaded: (names) => seen.push(`reloaded ${names.join()}`),
      refused: (problems) => seen.push(`refused ${problems.length}`),
      unreadable: () => seen.push('unreadable'),
    },
    requests: { providerRequest: ({ op, result }) => void requests.push(`${op} ${result}`) },
    onReload: () => seen.push('told'),
  });
  const stop = new AbortController();
  const done = providers.run(stop.signal);
  return { clock, seen, requests, providers, stop, done };
}

test('without a file there is no provider, and the loop waits for its stop', async () => {
  const { clock, providers, stop, done } = setUp(undefined);
  expect(providers.get('local')).toBeUndefined();
  expect(providers.list()).toEqual([]);
  expect(providers.checked()).toEqual([]);
  let ended = false;
  void done.then(() => {
    ended = true;
  });
  await clock.advance(60_000);
  expect(ended).toBe(false);
  stop.abort();
  await done;
});

test('every request to a provider is observed', async () => {
  const { providers, requests, stop, done } = setUp({ path: '/unused', text: text('local') });
  await providers.get('local')?.delete('id', stop.signal);
  expect(requests).toEqual(['delete ok']);
  stop.abort();
  await done;
});

test('a changed file takes effect, and a faulty one leaves the former in force', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'providers-'));
  const path = join(folder, 'providers.yaml');
  await writeFile(path, text('one'));
  const { clock, seen, providers, stop, done } = setUp({ path, text: text('one') });
  /** One look at the file: its read is real, so its end is waited for. */
  const look = async () => {
    await vi.waitFor(() => expect(clock.pendingTimers).toBe(1));
    await clock.advance(6_000);
    await vi.waitFor(() => expect(clock.pendingTimers).toBe(1));
  };
  await writeFile(path, text('one', 'two'));
  await look();
  expect(providers.get('two')?.name).toBe('two');
  expect(providers.list().map(({ name }) => name)).toEqual(['one', 'two']);
  expect(providers.checked().map(({ name }) => name)).toEqual(['one', 'two']);
  await writeFile(path, `${text('one')}oops: 1\n`);
  await look();
  expect(providers.get('two')?.name).toBe('two');
  await writeFile(path, text('three'));
  await look();
  expect(providers.get('two')).toBeUndefined();
  expect(providers.list().map(({ name }) => name)).toEqual(['three']);
  expect(providers.checked().map(({ name }) => name)).toEqual(['three']);
  expect(seen).toEqual(['reloaded one,two', 'told', 'refused 1', 'reloaded three', 'told']);
  stop.abort();
  await done;
  await rm(folder, { recursive: true });
});

test('the check of a file gives a line for each fault', () => {
  expect(checkProviders(text('a'))).toEqual([]);
  expect(checkProviders(text('a', 'a'))).toHaveLength(1);
});
