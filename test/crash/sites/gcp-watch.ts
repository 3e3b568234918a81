/** Follows the instances of all projects, and holds at each instant what must never be otherwise. */
import { nameOf, objectAt, stringAt, uidOf } from '#deploy/local/control-plane/api/object-meta.ts';
import { type JsonObject, objects } from '#deploy/local/control-plane/json.ts';
import type { KubeClient } from '#deploy/local/kube/client.ts';
import { FINALIZER, UID_LABEL } from '#shared/crd/names.ts';
import type { Machines } from '#test/fakes/compute/machines.ts';
import type { FakeProject, Hypervisor, Instance } from '#test/fakes/compute/project.ts';
import { keyOf } from '#test/fakes/compute/project.ts';
import type { Wish } from '#test/integration/fleet.ts';
import { type MachineWatch, unwanted } from '#test/integration/machine-watch.ts';
import { PROXIES } from '#test/integration/proxy-objects.ts';

export interface InstanceWatch {
  /** To be told of every start and end. */
  readonly hypervisor: Hypervisor;
  over(kube: KubeClient, projects: readonly FakeProject[]): MachineWatch;
  /** The instance is terminated, as a preemption does it. */
  kill(address: string, projects: readonly FakeProject[]): boolean;
}

interface Options {
  readonly hypervisor: Machines;
  /** Where the instance of a Proxy of that name has to be. */
  readonly projectOf: (proxyName: string) => string;
}

const ownerOf = ({ labels }: Instance) => labels[UID_LABEL] ?? '';

export function watchInstances({ hypervisor, projectOf }: Options): InstanceWatch {
  const present = new Set<Instance>();
  const dead = new Map<string, string>();
  const faults: string[] = [];
  let made = 0;

  function started(instance: Instance): void {
    made++;
    present.add(instance);
    const owner = ownerOf(instance);
    const twins = [...present].filter((one) => ownerOf(one) === owner && !one.forced);
    if (twins.length > 1) faults.push(`proxy ${owner} has ${twins.length} instances`);
    hypervisor.started(instance);
  }

  const allOf = (projects: readonly FakeProject[]) =>
    projects.flatMap((project) => {
      project.settle();
      return [...project.instances.values()].map((instance) => ({ project, instance }));
    });

  return {
    hypervisor: {
      nextAddress: hypervisor.nextAddress,
      started,
      stopped(instance) {
        present.delete(instance);
        hypervisor.stopped(instance);
      },
    },
    kill(address, projects) {
      const all = allOf(projects);
      const found = all.find(({ instance }) => instance.externalIP === address);
      if (found === undefined || found.instance.forced !== undefined) return false;
      found.instance.forced = 'TERMINATED';
      dead.set(address, `${found.instance.name} was terminated`);
      return hypervisor.kill(address);
    },
    over: (kube, projects) => ({
      faults,
      get made() {
        return made;
      },
      dead,
      get present() {
        return present.size;
      },
      running: () =>
        allOf(projects)
          .filter(({ project, instance }) => project.statusOf(instance) === 'RUNNING')
          .map(({ instance }) => instance.externalIP),
      async checkRelease(call) {
        const uid = /"uid":"([^"]+)"/.exec(call.body)?.[1] ?? '';
        for (const { instance } of allOf(projects)) {
          if (ownerOf(instance) !== uid) continue;
          faults.push(`${call.path} is let go while its instance ${instance.name} is there`);
        }
      },
      async missing(living) {
        const proxies = objects((await kube.request({ path: PROXIES }))['items']);
        const all = allOf(projects);
        const uids = new Set([...living.values()].map(({ uid }) => uid));
        const ownerless = all.filter(({ instance }) => !uids.has(ownerOf(instance)));
        return [
          ...unwanted(proxies, living),
          ...[...living.values()].flatMap((wish) => lacking(wish, proxies, all, projectOf)),
          ...ownerless.map(({ instance }) => `${instance.name} belongs to no living proxy`),
        ];
      },
      close: async () => {},
    }),
  };
}

interface Found {
  readonly project: FakeProject;
  readonly instance: Instance;
}

/** Exactly one instance, in the right project, as the present spec has it, recorded and usable. */
function lacking(
  { name, uid, port }: Wish,
  proxies: readonly JsonObject[],
  all: readonly Found[],
  projectOf: Options['projectOf'],
): string[] {
  const proxy = proxies.find((one) => uidOf(one) === uid);
  if (proxy === undefined) return [`${name} is gone though nobody deleted it`];
  const own = all.filter(({ instance }) => ownerOf(instance) === uid);
  const [found] = own;
  if (found === undefined || own.length > 1) return [`${name} has ${own.length} instances`];
  const { project, instance } = found;
  const status = objectAt(proxy, 'status');
  const id = keyOf(instance.zone, instance.name);
  const checks: readonly [boolean, string][] = [
    [project.options.project === projectOf(nameOf(proxy)), 'its instance is in another project'],
    [project.statusOf(instance) === 'RUNNING', 'its instance does not run'],
    [JSON.stringify(instance.body).includes(`on ${port}`), `it does not listen on ${port}`],
    [stringAt(status, 'providerID') === id, 'its instance is not recorded'],
    [stringAt(status, 'phase') === 'Ready', `its phase is ${stringAt(status, 'phase')}`],
    [JSON.stringify(proxy['metadata']).includes(FINALIZER), 'it has no finalizer'],
  ];
  return checks.filter(([holds]) => !holds).map(([, what]) => `${name}: ${what}`);
}
