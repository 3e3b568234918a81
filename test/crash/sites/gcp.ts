/**
 * Machines as instances of the fake of Compute Engine, in two projects of one provider each. The
 * agent reaches it by the official client; the machines are real forward proxies.
 */
import { startMachines } from '#test/fakes/compute/machines.ts';
import { type ComputeRequest, IMAGE, startFakeCompute, ZONES } from '#test/fakes/compute/server.ts';
import { COMMON_EFFECTS, type SideEffect } from '../side-effects.ts';
import { watchInstances } from './gcp-watch.ts';
import type { Site } from './site.ts';

const OPERATION_MS = 150;
const BOOT_MS = 300;
/** By the name of their provider. */
const PROJECTS: Readonly<Record<string, string>> = { 'gcp-a': 'crawl-a', 'gcp-b': 'crawl-b' };
const PROVIDERS = Object.keys(PROJECTS);

/** By turns: every project has its share of the fleet. */
const providerOf = (name: string) =>
  PROVIDERS[Number(name.replace(/\D/g, '')) % PROVIDERS.length] ?? '';

export async function openGcpSite(): Promise<Site> {
  const machines = startMachines();
  const watch = watchInstances({
    hypervisor: machines,
    projectOf: (name) => PROJECTS[providerOf(name)] ?? '',
  });
  const compute = await startFakeCompute({
    projects: Object.values(PROJECTS),
    operationMs: OPERATION_MS,
    bootMs: BOOT_MS,
    hypervisor: watch.hypervisor,
  });
  const projects = Object.values(PROJECTS).map((name) => compute.project(name));
  return {
    effects: [...COMMON_EFFECTS, 'instance inserted', 'instance deleted'],
    causes: {
      'instance inserted': ['create', 'create', 'edit'],
      'instance deleted': ['edit', 'delete', 'delete'],
    },
    providers: Object.entries(PROJECTS).map(([name, project]) => ({
      name,
      type: 'gcp',
      gcp: { project, endpoint: compute.endpoint },
    })),
    specOf: (name, port) => ({
      provider: providerOf(name),
      port,
      placement: { zone: ZONES[0], machineType: 'e2-micro', image: IMAGE },
      cloudInit: { inline: `#cloud-config\n# listens on ${port}\n` },
    }),
    intercept(strike) {
      compute.hooks = {
        before: (request) => strike(effectOf(request), 'sent'),
        taken: (request) => strike(effectOf(request), 'taken'),
        answered: (request) => void strike(effectOf(request), 'answered'),
      };
    },
    watch: (kube) => watch.over(kube, projects),
    kill: (_world, machine) => watch.kill(machine, projects),
    async close() {
      await compute.close();
      await machines.close();
    },
  };
}

function effectOf({ method, target }: ComputeRequest): SideEffect | undefined {
  if (method === 'POST' && /\/instances\?/.test(target)) return 'instance inserted';
  return method === 'DELETE' && target.includes('/instances/') ? 'instance deleted' : undefined;
}
