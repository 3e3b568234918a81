/** Wraps a provider so that each request is observed; providers themselves count nothing. */
import type { Clock } from '#shared/clock.ts';
import { errorClass, type ProviderErrorClass, type ProviderOp } from './errors.ts';
import { limitsOf, type Provider } from './provider.ts';

export interface ProviderRequest {
  /** The configured name. */
  readonly provider: string;
  readonly op: Exclude<ProviderOp, 'check'>;
  readonly result: 'ok' | ProviderErrorClass;
  readonly durationMs: number;
}

export interface ProviderObserver {
  /** Called once for each request, when it ends. */
  providerRequest(request: ProviderRequest): void;
}

/** The same provider, each of its requests reported to `observer` with its class of outcome. */
export function instrument(provider: Provider, observer: ProviderObserver, clock: Clock): Provider {
  async function observed<T>(op: ProviderRequest['op'], call: () => Promise<T>): Promise<T> {
    const startedMs = clock.monotonicMs();
    const report = (result: ProviderRequest['result']) =>
      observer.providerRequest({
        provider: provider.name,
        op,
        result,
        durationMs: clock.monotonicMs() - startedMs,
      });
    try {
      const answer = await call();
      report('ok');
      return answer;
    } catch (error) {
      report(errorClass(error));
      throw error;
    }
  }
  return {
    ...limitsOf(provider),
    name: provider.name,
    type: provider.type,
    create: (request, signal) => observed('create', () => provider.create(request, signal)),
    get: (id, signal) => observed('get', () => provider.get(id, signal)),
    delete: (id, signal) => observed('delete', () => provider.delete(id, signal)),
    disown: (id, signal) => observed('disown', () => provider.disown(id, signal)),
    listByTag: (signal) => observed('list', () => provider.listByTag(signal)),
  };
}
