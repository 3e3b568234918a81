/**
 * The sweeper of a real agent over real machines: what nobody owns goes, and nothing else. Also
 * what stays when a Proxy lets its machine go on purpose.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { metaMap, metaString, uidOf } from '#deploy/local/control-plane/api/object-meta.ts';
import { type JsonObject, objects } from '#deploy/local/control-plane/json.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { INSTALLATION_LABEL, MANAGED_LABEL, UID_LABEL } from '#shared/crd/names.ts';
import { type AgentWorld, cannotRun, openAgentWorld } from './agent-world.ts';
import { type ApiProxy, startApiProxy } from './api-proxy.ts';
import { eventually } from './eventually.ts';
import { createProxy, PROXIES } from './proxy-objects.ts';

const PODS = '/api/v1/namespaces/default/pods';
const MERGE = 'application/merge-patch+json';
const FLAGS = ['--gc-interval=1s', '--gc-min-age=1s', '--provider-check-interval=10s'];
/** Several sweeps. */
const SWEEPS_MS = 6_000;

let world: AgentWorld;
let relay: ApiProxy;

async function pods(): Promise<JsonObject[]> {
  return objects((await world.kube.request({ path: PODS }))['items']);
}

/** Pods by the UID of their Proxy; those on their way out are not counted. */
async function owners(): Promise<string[]> {
  const alive = (await pods()).filter((pod) => metaString(pod, 'deletionTimestamp') === '');
  return alive.map((pod) => metaMap(pod, 'labels')[UID_LABEL] ?? '').sort();
}

async function readyProxy(name: string, spec: JsonObject = {}): Promise<string> {
  const uid = uidOf(await createProxy(world.kube, name, { provider: 'local', ...spec }));
  await eventually(async () => expect(await owners()).toContain(uid), 20_000);
  return uid;
}

function patch(name: string, body: JsonObject): Promise<JsonObject> {
  return world.kube.request({
    method: 'PATCH',
    path: `${PROXIES}/${name}`,
    contentType: MERGE,
    body,
  });
}

const remove = (name: string) =>
  world.kube.request({ method: 'DELETE', path: `${PROXIES}/${name}` });

/** A machine that another agent made, or that carries half a mark. */
function createPod(name: string, labels: Record<string, string>): Promise<JsonObject> {
  const spec = { containers: [{ name: 'squid', image: 'registry.example/none' }] };
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec };
  return world.kube.request({ method: 'POST', path: PODS, body });
}

describe.skipIf(cannotRun !== undefined)(`orphans${cannotRun ? ` (${cannotRun})` : ''}`, () => {
  beforeAll(async () => {
    world = await openAgentWorld();
    relay = await startApiProxy(world.api, {});
    await world.startAgent('agent', relay, FLAGS);
  }, 30_000);
  afterAll(async () => {
    await relay?.close();
    await world?.close();
  }, 30_000);

  it('of which somebody stripped the finalizer are collected, and the Event says so', async () => {
    const [kept, lost] = [await readyProxy('kept'), await readyProxy('lost')];
    const mark = { [MANAGED_LABEL]: 'true', [UID_LABEL]: 'of-somebody' };
    await createPod('foreign', { ...mark, [INSTALLATION_LABEL]: 'another' });
    await createPod('unmarked', { [UID_LABEL]: 'of-nobody' });
    await patch('lost', { metadata: { finalizers: null } });
    await remove('lost');
    await eventually(async () => expect(await owners()).not.toContain(lost), 20_000);
    await clock.sleep(SWEEPS_MS);
    expect(await owners()).toEqual([kept, 'of-nobody', 'of-somebody'].sort());
    const events = await world.kube.request({ path: '/api/v1/namespaces/default/events' });
    const collected = objects(events['items']).filter(({ reason }) => reason === 'OrphanCollected');
    expect(collected).toMatchObject([{ involvedObject: { name: 'lost', uid: lost } }]);
  }, 60_000);

  it('that were let go on purpose run on without their mark', async () => {
    const uid = await readyProxy('freed', { deletionPolicy: 'Orphan' });
    const before = (await pods()).find((pod) => metaMap(pod, 'labels')[UID_LABEL] === uid);
    await remove('freed');
    await eventually(async () => {
      const gone = world.kube.request({ path: `${PROXIES}/freed` });
      await expect(gone).rejects.toMatchObject({ status: 404 });
    }, 20_000);
    await clock.sleep(SWEEPS_MS);
    const after = (await pods()).find((pod) => uidOf(pod) === uidOf(before ?? {}));
    expect(after).toMatchObject({ status: { phase: 'Running' } });
    expect(metaMap(after ?? {}, 'labels')[MANAGED_LABEL]).toBeUndefined();
  }, 60_000);
});
