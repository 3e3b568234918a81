/** Named provider instances: `spec.provider` of a Proxy refers to a name in this registry. */
import type { ProviderConfig } from './config.ts';
import type { Checker, Provider } from './provider.ts';

/** How each type is made; filled at the composition root, which alone knows the types. */
export type ProviderBuilders = {
  readonly [Type in ProviderConfig['type']]: (
    config: Extract<ProviderConfig, { type: Type }>,
  ) => Provider & Partial<Checker>;
};

/** What provider checks ask; `checker` is absent when the type has no check. */
export interface CheckedProvider {
  readonly name: string;
  readonly type: string;
  readonly checker?: Checker;
}

export interface ProviderRegistry {
  /** The provider that is configured under `name`, if any. */
  get(name: string): Provider | undefined;
  /** All of them, in the order of the configuration. */
  list(): readonly Provider[];
  /** The undecorated checkers: a check never counts as a request of the provider. */
  checked(): readonly CheckedProvider[];
  /** Lets go of what the providers hold; they are not used afterwards. */
  close(): Promise<void>;
}

/**
 * Builds every configured provider. Building dials nothing, so one backend that is away cannot
 * keep the others from starting.
 *
 * @param decorate wraps each provider, for example with `instrument`.
 */
export function createRegistry(
  builders: ProviderBuilders,
  configs: readonly ProviderConfig[],
  decorate: (provider: Provider) => Provider = (provider) => provider,
): ProviderRegistry {
  const providers = new Map<string, Provider>();
  const checked: CheckedProvider[] = [];
  const closing: (() => Promise<void>)[] = [];
  for (const config of configs) {
    const built = build(builders, config);
    providers.set(config.name, decorate(built));
    checked.push({ name: config.name, type: config.type, ...checkerOf(built) });
    if (built.close !== undefined) closing.push(built.close.bind(built));
  }
  const list = [...providers.values()];
  return {
    get: (name) => providers.get(name),
    list: () => list,
    checked: () => checked,
    async close() {
      await Promise.allSettled(closing.map((close) => close()));
    },
  };
}

function build(builders: ProviderBuilders, config: ProviderConfig): Provider & Partial<Checker> {
  // The compiler does not see that type and builder belong together.
  const builder = builders[config.type] as (config: ProviderConfig) => Provider & Partial<Checker>;
  return builder(config);
}

function checkerOf(built: Provider & Partial<Checker>): { checker?: Checker } {
  if (built.check === undefined) return {};
  const check = built.check.bind(built);
  return { checker: { check } };
}
