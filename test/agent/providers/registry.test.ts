import { describe, expect, test, vi } from 'vitest';
import { parseProvidersConfig } from '#agent/providers/config.ts';
import { instrument } from '#agent/providers/instrumentation.ts';
import { createRegistry } from '#agent/providers/registry.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { MemoryProvider } from '#test/fakes/memory-provider.ts';

describe('registry', () => {
  const parsed = parseProvidersConfig(
    'providers: [{name: a, type: kubernetes, kubernetes: {image: i}},' +
      ' {name: b, type: kubernetes, kubernetes: {image: j}}]',
  );
  const configs = parsed.ok ? parsed.providers : [];

  test('finds providers by name, decorated, and keeps their checkers bare', async () => {
    const check = vi.fn(async () => []);
    const registry = createRegistry(
      {
        kubernetes: ({ name }) =>
          Object.assign(new MemoryProvider({ name }), name === 'a' ? { check } : {}),
        gcp: ({ name }) => new MemoryProvider({ name }),
      },
      configs,
      (provider) => instrument(provider, { providerRequest: () => {} }, new FakeClock()),
    );
    expect(registry.list().map((each) => each.name)).toEqual(['a', 'b']);
    expect(registry.get('a')).not.toBeInstanceOf(MemoryProvider);
    expect(registry.get('c')).toBeUndefined();
    const [a, b] = registry.checked();
    expect(b).toEqual({ name: 'b', type: 'kubernetes' });
    await a?.checker?.check(new AbortController().signal);
    expect(check).toHaveBeenCalledOnce();
  });
});
