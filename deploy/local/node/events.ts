/** Events of pods, as `kubectl describe pod` shows them. A repeated one is counted up. */
import { createHash } from 'node:crypto';
import type { Clock } from '#shared/clock.ts';
import type { JsonObject } from '../control-plane/json.ts';
import { type KubeClient, KubeError } from '../kube/client.ts';
import type { Pod } from './pod.ts';
import { kubeTime } from './pod-status.ts';

/** Requests under way at once; beyond that an event is dropped rather than queued for ever. */
const IN_FLIGHT_MAX = 64;

export interface EventRecorder {
  /** Returns at once; an event that cannot be written is lost, as with a kubelet. */
  emit(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

export function createEventRecorder(
  { client, clock, signal }: { client: KubeClient; clock: Clock; signal: AbortSignal },
  source: { readonly component: string; readonly host: string },
): EventRecorder {
  let inFlight = 0;

  async function write(pod: Pod, type: string, reason: string, message: string): Promise<void> {
    const now = kubeTime(clock.now());
    const path = `/api/v1/namespaces/${pod.metadata.namespace}/events`;
    const name = eventName(pod, reason, message);
    const body: JsonObject = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace: pod.metadata.namespace },
      involvedObject: {
        apiVersion: 'v1',
        kind: 'Pod',
        namespace: pod.metadata.namespace,
        name: pod.metadata.name,
        uid: pod.metadata.uid,
      },
      type,
      reason,
      message,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component: source.component, host: source.host },
      reportingComponent: source.component,
      reportingInstance: source.host,
    };
    try {
      await client.request({ method: 'POST', path, body, signal });
    } catch (error) {
      if (!(error instanceof KubeError) || error.status !== 409) throw error;
      await countUp(`${path}/${name}`, now);
    }
  }

  async function countUp(path: string, now: string): Promise<void> {
    const event = await client.request({ path, signal });
    const count = typeof event['count'] === 'number' ? event['count'] + 1 : 2;
    await client.request({
      method: 'PATCH',
      path,
      contentType: 'application/merge-patch+json',
      body: { count, lastTimestamp: now },
      signal,
    });
  }

  return {
    emit(pod, type, reason, message) {
      if (inFlight >= IN_FLIGHT_MAX) return;
      inFlight++;
      write(pod, type, reason, message)
        .catch(() => {})
        .finally(() => inFlight--);
    },
  };
}

/** The same event of the same pod has the same name, which is how a repeat is known. */
function eventName(pod: Pod, reason: string, message: string): string {
  const hash = createHash('sha256').update(`${pod.metadata.uid}\0${reason}\0${message}`);
  return `${pod.metadata.name.slice(0, 230)}.${hash.digest('hex').slice(0, 16)}`;
}
