import { describe, expect, test, vi } from 'vitest';
import { ProviderError } from '#agent/providers/errors.ts';
import { instrument } from '#agent/providers/instrumentation.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { MemoryProvider } from '#test/fakes/memory-provider.ts';

describe('instrumentation', () => {
  const request = {
    name: 'n',
    installation: 'here',
    uid: 'u',
    namespace: 'ns',
    proxyName: 'p',
    placement: {},
    port: 3128,
  };

  test('reports each request once, with its class and duration, and passes the answer on', async () => {
    const clock = new FakeClock();
    const provider = new MemoryProvider({
      name: 'eu',
      around: async (_op, call) => {
        await clock.advance(250);
        return call();
      },
    });
    const providerRequest = vi.fn();
    const observed = instrument(provider, { providerRequest }, clock);
    const { signal } = new AbortController();
    const id = await observed.create(request, signal);
    await observed.get(id, signal);
    await observed.listByTag(signal);
    await observed.delete(id, signal);
    await expect(observed.get('zones/a/other', signal)).rejects.toBeInstanceOf(ProviderError);
    provider.failNext('delete', 'QuotaExceeded');
    await expect(observed.delete(id, signal)).rejects.toBeInstanceOf(ProviderError);
    expect(providerRequest.mock.calls.map(([each]) => each)).toEqual([
      { provider: 'eu', op: 'create', result: 'ok', durationMs: 250 },
      { provider: 'eu', op: 'get', result: 'ok', durationMs: 250 },
      { provider: 'eu', op: 'list', result: 'ok', durationMs: 250 },
      { provider: 'eu', op: 'delete', result: 'ok', durationMs: 250 },
      { provider: 'eu', op: 'get', result: 'NotFound', durationMs: 250 },
      { provider: 'eu', op: 'delete', result: 'QuotaExceeded', durationMs: 250 },
    ]);
  });

  test('calls what nobody classified Transient', async () => {
    const provider = new MemoryProvider();
    vi.spyOn(provider, 'get').mockRejectedValue(new TypeError('bug'));
    const providerRequest = vi.fn();
    const observed = instrument(provider, { providerRequest }, new FakeClock());
    await expect(observed.get('x', new AbortController().signal)).rejects.toThrow('bug');
    expect(providerRequest).toHaveBeenCalledWith(expect.objectContaining({ result: 'Transient' }));
  });
});
