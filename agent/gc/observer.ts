/** What the sweeper tells about itself; implemented by telemetry. */
import type { Instance } from '#agent/providers/provider.ts';

/**
 * - `completed`: every provider was swept.
 * - `partial`: at least one provider could not be listed in full, or not all that was due was tried.
 * - `held`: the API server knows no Proxy at all while machines exist; nothing was deleted.
 * - `refused`: the sweep cannot know which Proxies exist; no provider was asked.
 * - `failed`: the Proxies could not be listed, or leadership ended.
 */
export type SweepResult = 'completed' | 'partial' | 'held' | 'refused' | 'failed';

export interface GcObserver {
  /** Once for each sweep, at its end. */
  swept(result: SweepResult): void;
  /** Why no machine may be judged at present. */
  refused(reason: string): void;
  /** The sweep ended early. */
  failed(error: unknown): void;
  /** The API server has no Proxy, but the provider has `machines` of ours: nothing is deleted. */
  heldBack(provider: string, machines: number): void;
  /** The provider could not be listed; what was known of it stays. */
  providerSkipped(provider: string, error: unknown): void;
  /** A part of the provider's scope, `unread`, could not be listed; the rest is swept. */
  providerPartial(provider: string, unread: readonly string[]): void;
  /** Machines that nobody owns now, `due` of which this sweep deletes. */
  orphans(provider: string, count: number, due: number): void;
  /** The provider is no longer swept. */
  providerForgotten(provider: string): void;
  deleted(provider: string, orphan: Instance): void;
  /** It is tried again in the next sweep. */
  deleteFailed(provider: string, orphan: Instance, error: unknown): void;
}
