/** The providers of the configuration file, kept in step with it while the agent runs. */
import type { Clock, Random } from '#shared/clock.ts';
import { type ProviderConfig, parseProvidersConfig } from './providers/config.ts';
import { instrument, type ProviderObserver } from './providers/instrumentation.ts';
import type { Provider } from './providers/provider.ts';
import {
  type CheckedProvider,
  createRegistry,
  type ProviderBuilders,
} from './providers/registry.ts';
import { untilAborted } from './runtime/deadline.ts';
import { watchFile } from './runtime/watched-file.ts';

export interface ProviderFileObserver {
  /** The file changed and is in force. */
  reloaded(names: readonly string[]): void;
  /** The file changed, but what it says is faulty; what was in force stays. */
  refused(problems: readonly string[]): void;
  unreadable(error: unknown): void;
}

export interface ProviderFileDeps {
  /** Undefined: no file, no providers, nothing to watch. */
  readonly file: { readonly path: string; readonly text: string } | undefined;
  /** How each type is made; only the composition root knows the types. */
  readonly builders: ProviderBuilders;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: ProviderFileObserver;
  /** Told of each request to a provider. */
  readonly requests: ProviderObserver;
  /** Called after a reload: what a provider was missing for can go on. */
  readonly onReload: () => void;
}

export interface ProviderFile {
  get(name: string): Provider | undefined;
  /** All that are in force now, in the order of the file. */
  list(): readonly Provider[];
  /** The same, as provider checks ask them. */
  checked(): readonly CheckedProvider[];
  /** Watches the file until `signal` aborts; then the providers are let go. */
  run(signal: AbortSignal): Promise<void>;
}

/** One line for each fault of the text, naming its YAML path. */
export function checkProviders(text: string): readonly string[] {
  const parsed = parseProvidersConfig(text);
  return parsed.ok ? [] : parsed.problems;
}

/** `file.text` has been checked before; a fault in it throws. */
export function openProviderFile(deps: ProviderFileDeps): ProviderFile {
  const { file, clock, random, observer } = deps;
  const build = (configs: readonly ProviderConfig[]) =>
    createRegistry(deps.builders, configs, (provider) =>
      instrument(provider, deps.requests, clock),
    );
  let registry = build(file === undefined ? [] : parse(file.text));
  return {
    get: (name) => registry.get(name),
    list: () => registry.list(),
    checked: () => registry.checked(),
    async run(signal) {
      if (file === undefined) return untilAborted(signal);
      await using closing = new AsyncDisposableStack();
      closing.defer(() => registry.close());
      await watchFile({
        ...file,
        clock,
        random,
        signal,
        onError: observer.unreadable,
        onChange(text) {
          const problems = checkProviders(text);
          if (problems.length > 0) {
            observer.refused(problems);
            return;
          }
          const configs = parse(text);
          const before = registry;
          registry = build(configs);
          void before.close();
          observer.reloaded(configs.map((config) => config.name));
          deps.onReload();
        },
      });
    },
  };
}

function parse(text: string): readonly ProviderConfig[] {
  const parsed = parseProvidersConfig(text);
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  return parsed.providers;
}
