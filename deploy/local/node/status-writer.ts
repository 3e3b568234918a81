/** Writes a pod's status: the latest one wins, one request at a time, tried until it is in. */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '#shared/clock.ts';
import type { JsonObject } from '../control-plane/json.ts';
import { type KubeClient, KubeError } from '../kube/client.ts';

const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;

export interface StatusWriter {
  /** Takes a status to be written; returns at once. */
  write(status: JsonObject): void;
  /** Resolves when what was taken is written, the pod is gone, or `signal` aborts. */
  flush(): Promise<void>;
}

export interface StatusWriterDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** The patch names the UID, so that a newer pod of the same name never gets our status. */
export function createStatusWriter(
  { client, clock, signal }: StatusWriterDeps,
  target: { readonly path: string; readonly uid: string },
): StatusWriter {
  let wanted: JsonObject | undefined;
  let written: JsonObject | undefined;
  let busy: Promise<void> | undefined;

  async function drain(): Promise<void> {
    let retryMs = RETRY_MS_MIN;
    while (wanted !== undefined && !signal.aborted) {
      const status = wanted;
      const outcome = await send(status);
      if (outcome === 'retry') {
        await clock.sleep(retryMs, signal).catch(() => {});
        retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
        continue;
      }
      if (outcome === 'written') written = status;
      if (wanted === status) wanted = undefined;
    }
  }

  async function send(status: JsonObject): Promise<'written' | 'gone' | 'retry'> {
    try {
      await client.request({
        method: 'PATCH',
        path: `${target.path}/status`,
        contentType: 'application/merge-patch+json',
        body: { metadata: { uid: target.uid }, status },
        signal,
      });
      return 'written';
    } catch (error) {
      // 404: gone. 409 and 422: another pod has the name. Everything else may pass.
      const final = error instanceof KubeError && [404, 409, 422].includes(error.status);
      return final ? 'gone' : 'retry';
    }
  }

  return {
    write(status) {
      if (isDeepStrictEqual(status, wanted ?? written)) return;
      wanted = status;
      busy ??= drain().finally(() => {
        busy = undefined;
      });
    },
    flush: async () => busy,
  };
}
