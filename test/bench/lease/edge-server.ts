/** Our edge, filled by the sync API. */
import { systemClock as clock } from '#shared/clock.ts';
import { startEdge } from '#test/workerd/edge.ts';
import type { Runtime } from '#test/workerd/runtime.ts';
import { fillEdge } from './fill.ts';
import { HOLD_TTL_SECONDS, USED_SHARE } from './fleet.ts';
import type { Server, ServerDeps } from './server.ts';

export interface EdgeShape {
  readonly proxies: number;
  readonly shards: number;
  readonly inspect?: boolean;
  /** Another checkout of the edge. */
  readonly root?: string | undefined;
  /** Held while others are handed out; absent: one for some share of the proxies. */
  readonly held?: number;
}

/** An edge that idles while others are measured must not forget its fleet for that. */
const VARS = {
  AGENT_STALE_SECONDS: String(HOLD_TTL_SECONDS),
  MAX_LEASE_TTL_SECONDS: String(HOLD_TTL_SECONDS),
};

export async function startEdgeServer(
  { dir, hold }: ServerDeps,
  shape: EdgeShape,
): Promise<Server & { readonly runtime: Runtime }> {
  const { proxies, shards, inspect, root } = shape;
  const runtime = await startEdge({ dir, vars: VARS, shards, inspect, root });
  try {
    const agent = await fillEdge(runtime.url, shape, () => clock.monotonicMs());
    await hold(runtime.url, shape.held ?? Math.round(proxies * USED_SHARE));
    return {
      url: runtime.url,
      pids: [runtime.pid],
      runtime,
      refresh: () => agent.heartbeat(),
      [Symbol.asyncDispose]: () => runtime.stop(),
    };
  } catch (error) {
    await runtime.kill();
    throw error;
  }
}
