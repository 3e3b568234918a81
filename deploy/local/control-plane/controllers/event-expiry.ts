/** Events are kept for an hour after they were last seen, as the real server keeps them. */
import type { Clock } from '#shared/clock.ts';
import { nameOf, namespaceOf } from '../api/object-meta.ts';
import { eventTimeMs } from '../registry/strategies/event.ts';
import type { ObjectStore } from '../storage/object-store.ts';

const EVENTS = 'events';
const EVENT_TTL_MS = 3_600_000;
const SWEEP_MS = 60_000;

/** Sweeps each minute; returns how to stop. */
export function startEventExpiry(store: ObjectStore, clock: Clock): () => void {
  const arm = () =>
    clock.setTimer(() => {
      sweep(store, clock.now() - EVENT_TTL_MS);
      timer = arm();
    }, SWEEP_MS);
  let timer = arm();
  return () => timer.cancel();
}

function sweep(store: ObjectStore, oldestMs: number): void {
  for (const event of store.list(EVENTS)) {
    const lastMs = eventTimeMs(event);
    if (lastMs === undefined || lastMs >= oldestMs) continue;
    store.remove({ resource: EVENTS, namespace: namespaceOf(event), name: nameOf(event) });
  }
}
