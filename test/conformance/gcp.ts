/**
 * The gcp provider over the fake of Compute Engine, through the official client. Its machines are
 * real forward proxies, each on an address of its own.
 */
import type { ComputeApi } from '#agent/providers/gcp/compute-api.ts';
import { createComputeClient } from '#agent/providers/gcp/compute-client.ts';
import { createGcpProvider } from '#agent/providers/gcp/provider.ts';
import { buildInstance } from '#agent/providers/gcp/request.ts';
import { wireLog } from '#agent/providers/gcp/wire-log.ts';
import type { Mark } from '#agent/providers/provider.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { configWith } from '#test/agent/providers/gcp/block.ts';
import { startMachines } from '#test/fakes/compute/machines.ts';
import { keyOf } from '#test/fakes/compute/project.ts';
import { IMAGE, PROJECT, startFakeCompute, ZONES } from '#test/fakes/compute/server.ts';
import { objectOf } from '#test/fakes/compute/validate.ts';
import { closedPort, listenTcp } from '#test/fakes/proxies.ts';
import type { Backend } from './backend.ts';
import { CONFIGURED_NAME } from './world.ts';

const [ZONE] = ZONES;
const OPERATION_MS = 60;
const BOOT_MS = 120;
const SETTLE_MS_MAX = 10_000;
/** One in which there is no room for an instance. */
const FULL = { project: 'crawl-full', region: 'europe-west1' };
const PORT = 3128;

const SURROUNDINGS = {
  namespace: 'crawl',
  placement: { zone: ZONE, machineType: 'e2-micro', image: IMAGE },
  port: PORT,
  cloudInit: `#cloud-config\n# listens on ${PORT}\n`,
};

export async function openGcpBackend(): Promise<Backend> {
  await using closing = new AsyncDisposableStack();
  const machines = startMachines();
  closing.defer(() => machines.close());
  const compute = await startFakeCompute({
    projects: [PROJECT, FULL.project],
    operationMs: OPERATION_MS,
    bootMs: BOOT_MS,
    hypervisor: machines,
  });
  closing.defer(() => compute.close());
  compute.project(FULL.project).quotas.set(`${FULL.region} INSTANCES`, 0);
  const silentServer = await listenTcp(() => {});
  closing.defer(() => silentServer.close());
  const nowhere = `http://127.0.0.1:${await closedPort()}`;
  const logLines: string[] = [];
  const clients: ComputeApi[] = [];
  closing.defer(async () => {
    await Promise.all(clients.map((client) => client.close()));
  });
  const write = (fields: object, message: string) =>
    void logLines.push(JSON.stringify({ ...fields, message }));
  const log = { trace: write, debug: write, warn: write };

  function providerAt(endpoint: string, project: string = PROJECT) {
    const config = configWith({ endpoint, project }, CONFIGURED_NAME);
    const talkative = { logLevel: 'trace', gcpWireLogFullPayloads: true };
    const wire = wireLog(log, config.name, talkative);
    const api = createComputeClient(config.gcp, { clock, ...wire });
    clients.push(api);
    return createGcpProvider(config, { api, clock, log });
  }

  function put(name: string, mark: Mark | undefined): string {
    const { uid, installation } = mark ?? { uid: '', installation: '' };
    const request = { name, uid, installation, proxyName: 'theirs', ...SURROUNDINGS };
    const body = objectOf(buildInstance(request, configWith({}).gcp));
    const labels = mark === undefined ? { app: 'other' } : body['labels'];
    compute.project().put(ZONE, name, { ...body, labels });
    return keyOf(ZONE, name);
  }

  const instance = (name: string) => compute.project().instances.get(keyOf(ZONE, name));
  const open = closing.move();
  return {
    surroundings: SURROUNDINGS,
    settleMsMax: SETTLE_MS_MAX,
    malformedIds: [
      `zones/${ZONE}`,
      `zones/${ZONE}/instances/`,
      `zones/${ZONE}/instances/a/b`,
      `zones//instances/a`,
      `zones/${ZONE}/disks/a`,
      `projects/${PROJECT}/zones/${ZONE}/instances/a`,
      `zones/${ZONE}/instances/A`,
      `/zones/${ZONE}/instances/a`,
      `zones/../instances/a`,
    ],
    idOf: (name) => keyOf(ZONE, name),
    logLines,
    newProvider: () => providerAt(compute.endpoint),
    refused: () => providerAt(nowhere),
    silent: () => providerAt(`http://127.0.0.1:${silentServer.port}`),
    exhausted: () => providerAt(compute.endpoint, FULL.project),
    async machines(name) {
      const project = compute.project();
      const found = [...project.instances.values()].filter((one) => one.name === name);
      return found.map((one) => JSON.stringify(project.resourceOf(one)));
    },
    secondary: async (name) => machines.serversOf(name),
    makeUnmarked: async (name) => put(name, undefined),
    makeMarked: async (name, mark) => put(name, mark),
    async makeUnknown(name, mark) {
      const word = 'HIBERNATING';
      const id = put(name, mark);
      const made = instance(name);
      if (made !== undefined) made.forced = word;
      return { id, word };
    },
    async holdDeletion(id) {
      const made = compute.project().instances.get(id);
      if (made === undefined) throw new Error(`no instance ${id}`);
      made.held = true;
      return async () => {
        made.held = false;
      };
    },
    close: () => open.disposeAsync(),
  };
}
