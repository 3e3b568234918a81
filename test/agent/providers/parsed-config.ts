/** The configuration of one provider, as a file would give it. */
import { type ProviderConfig, parseProvidersConfig } from '#agent/providers/config.ts';

/** @param entry of the list `providers`. */
export function parsedConfig<Type extends ProviderConfig['type']>(
  entry: { readonly name: string; readonly type: Type } & object,
): Extract<ProviderConfig, { type: Type }> {
  const parsed = parseProvidersConfig(JSON.stringify({ providers: [entry] }));
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const [config] = parsed.providers;
  if (config === undefined || !isOf(config, entry.type)) {
    throw new Error('no provider of this type');
  }
  return config;
}

function isOf<Type extends ProviderConfig['type']>(
  config: ProviderConfig,
  type: Type,
): config is Extract<ProviderConfig, { type: Type }> {
  return config.type === type;
}
