/**
 * Users of a cluster, played by chance: they create managed Proxies, edit what needs a new machine,
 * delete them and take their names again, and now and then a machine dies. What they want in the
 * end is kept in `living`.
 */
import { uidOf } from '#deploy/local/control-plane/api/object-meta.ts';
import type { JsonObject } from '#deploy/local/control-plane/json.ts';
import { type KubeClient, KubeError } from '#deploy/local/kube/client.ts';
import type { Random } from '#shared/clock.ts';
import type { MachineWatch } from './machine-watch.ts';
import { createProxy, PROXIES } from './proxy-objects.ts';
import { between, pick, shuffled } from './seed.ts';

export interface Wish {
  readonly name: string;
  readonly uid: string;
  readonly port: number;
}

export interface Fleet {
  /** By name: what is to be there when all has settled. */
  readonly living: ReadonlyMap<string, Wish>;
  /** Machines that the users gave a reason for: creations and edits. */
  readonly asked: number;
  /** What was done so far, by kind. */
  readonly done: Readonly<Record<Act, number>>;
  act(kind: Act): Promise<void>;
  /** Something by chance that keeps the fleet at its size. */
  actByChance(): Promise<void>;
}

export type Act = 'create' | 'edit' | 'delete' | 'kill';

/** Living at once; names beyond that wait for deletions to end. */
const LIVING_MIN = 5;
const LIVING_MAX = 8;
const NAMES = Array.from({ length: 14 }, (_, index) => `proxy-${index}`);
const PORTS = { min: 3128, max: 3999 };

export interface FleetDeps {
  readonly kube: KubeClient;
  readonly random: Random;
  readonly machines: MachineWatch;
  /** Kills a machine, as `machines.running` names it; answers whether it was there. */
  readonly kill: (machine: string) => boolean;
  /** A managed proxy of that name that listens on that port; all of it follows from the two. */
  readonly specOf?: (name: string, port: number) => JsonObject;
}

export function createFleet(deps: FleetDeps): Fleet {
  const { kube, random, machines } = deps;
  const { specOf = (_name, port) => ({ provider: 'local', port }) } = deps;
  const living = new Map<string, Wish>();
  const done: Record<Act, number> = { create: 0, edit: 0, delete: 0, kill: 0 };
  const anyLiving = () => pick(random, [...living.values()]);

  async function create(): Promise<void> {
    if (living.size >= LIVING_MAX) await remove();
    const free = NAMES.filter((name) => !living.has(name));
    for (const name of shuffled(random, free)) {
      const port = between(random, PORTS.min, PORTS.max);
      try {
        const spec = { ...specOf(name, port), healthCheck: { intervalSeconds: 5 } };
        living.set(name, { name, uid: uidOf(await createProxy(kube, name, spec)), port });
        done.create++;
        return;
      } catch (error) {
        // The one before it is still on its way out; another name will do.
        if (!(error instanceof KubeError && error.status === 409)) throw error;
      }
    }
  }

  async function edit(): Promise<void> {
    const wish = anyLiving();
    if (wish === undefined) return create();
    const port = wish.port === PORTS.max ? PORTS.min : wish.port + 1;
    await kube.request({
      method: 'PATCH',
      path: `${PROXIES}/${wish.name}`,
      body: { spec: specOf(wish.name, port) },
      contentType: 'application/merge-patch+json',
    });
    living.set(wish.name, { ...wish, port });
    done.edit++;
  }

  async function remove(): Promise<void> {
    const wish = anyLiving();
    if (wish === undefined) return;
    await kube.request({ method: 'DELETE', path: `${PROXIES}/${wish.name}` });
    living.delete(wish.name);
    done.delete++;
  }

  /** Whose it is does not matter, and neither does it that it was to go anyway. */
  async function kill(): Promise<void> {
    const machine = pick(random, machines.running());
    if (machine !== undefined && deps.kill(machine)) done.kill++;
  }

  const acts: Readonly<Record<Act, () => Promise<void>>> = { create, edit, delete: remove, kill };
  return {
    living,
    done,
    get asked() {
      return done.create + done.edit;
    },
    act: (kind) => acts[kind](),
    async actByChance() {
      if (living.size < LIVING_MIN) return create();
      const chance = random();
      if (chance < 0.35) return create();
      if (chance < 0.65) return edit();
      return chance < 0.85 ? remove() : kill();
    },
  };
}
