/** Keeps a process that may no longer lead from changing anything at a provider. */
import { limitsOf, type Provider } from './provider.ts';

/** The same provider; its calls that change something first make sure of the leadership. */
export function guard(provider: Provider, leadership: { assertHeld(): void }): Provider {
  async function held<T>(call: () => Promise<T>): Promise<T> {
    leadership.assertHeld();
    return call();
  }
  return {
    ...limitsOf(provider),
    name: provider.name,
    type: provider.type,
    create: (request, signal) => held(() => provider.create(request, signal)),
    get: (id, signal) => provider.get(id, signal),
    delete: (id, signal) => held(() => provider.delete(id, signal)),
    disown: (id, signal) => held(() => provider.disown(id, signal)),
    listByTag: (signal) => provider.listByTag(signal),
  };
}
