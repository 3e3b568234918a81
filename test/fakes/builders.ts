/** Builders of providers, of which a test needs one. */
import type { ProviderBuilders } from '#agent/providers/registry.ts';

/** Providers of the type `kubernetes` as the test makes them; others are none of its business. */
export function buildersWith(kubernetes: ProviderBuilders['kubernetes']): ProviderBuilders {
  return { kubernetes, gcp: unexpected, kvm: unexpected };
}

function unexpected({ name, type }: { readonly name: string; readonly type: string }): never {
  throw new Error(`no test here has a provider of the type ${type}, such as ${name}`);
}
