/** What a person does to a running stack, and what breaks in it: the edge follows each step. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { objectAt, stringAt } from '#deploy/local/control-plane/api/object-meta.ts';
import type { JsonObject } from '#deploy/local/control-plane/json.ts';
import type { KubeClient } from '#deploy/local/kube/client.ts';
import { isRunning, type ProcessIdentity } from '#deploy/local/process/identity.ts';
import { LeaseApiError, type LeaseClient } from '#shared/client/lease-client.ts';
import { systemClock } from '#shared/clock.ts';
import type { ListedProxy } from '#shared/wire/lease.ts';
import { eventually } from '#test/integration/eventually.ts';
import { createProxy, PROXIES } from '#test/integration/proxy-objects.ts';
import { cannotRun, cleanUp, leftOf, newStateDir, type Stack, startStack, whole } from './stack.ts';

const run = promisify(execFile);

let stack: Stack;
let kube: KubeClient;
let leases: LeaseClient;

async function proxy(name: string): Promise<{ phase: string; ip: string; providerID: string }> {
  const status = objectAt(await kube.request({ path: `${PROXIES}/${name}` }), 'status');
  const text = (key: string) => stringAt(status, key);
  return { phase: text('phase'), ip: text('ip'), providerID: text('providerID') };
}

async function atEdge(name: string): Promise<ListedProxy | undefined> {
  return (await leases.proxies()).proxies.find((one) => one.name === name);
}

function patchSpec(name: string, spec: JsonObject): Promise<JsonObject> {
  return kube.request({
    method: 'PATCH',
    path: `${PROXIES}/${name}`,
    contentType: 'application/merge-patch+json',
    body: { spec },
  });
}

/** Squid processes of the stack that listen on an address. */
function squidAt(ip: string): ProcessIdentity[] {
  return leftOf(stack.stateDir).filter(({ pid }) => {
    const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    const config = args[args.indexOf('-f') + 1];
    if (!args[0]?.endsWith('squid') || config === undefined) return false;
    return readFileSync(config, 'utf8').includes(`tcp_outgoing_address ${ip}\n`);
  });
}

describe.skipIf(cannotRun !== undefined)(whole('a running stack'), () => {
  beforeAll(async () => {
    stack = startStack(newStateDir(), ['--proxies=3']);
    await stack.step('fetched');
    kube = stack.kube();
    leases = stack.leases();
  }, 90_000);
  afterAll(async () => {
    await kube?.close();
    await cleanUp();
  }, 30_000);

  it('kubectl shows phases, addresses and latency', async (context) => {
    const args = ['--kubeconfig', join(stack.stateDir, 'kubeconfig'), 'get', 'px'];
    const shown = await run('kubectl', args).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') context.skip('needs kubectl');
      throw error;
    });
    const [header, ...rows] = shown.stdout.trim().split('\n');
    expect(header).toMatch(/^NAME +MODE +PROVIDER +PHASE +IP +LATENCY +AGE/);
    expect(rows).toHaveLength(3);
    for (const row of rows)
      expect(row).toMatch(/Managed +local +Ready +127\.42\.\d+\.\d+ +\d+ +\d/);
  });

  it('an edit of the attributes is at the edge within a second', async () => {
    const tookMs: number[] = [];
    for (const color of ['red', 'green', 'blue']) {
      const editedMs = systemClock.monotonicMs();
      await patchSpec('sample-1', { attributes: { color } });
      await eventually(async () => {
        expect((await atEdge('sample-1'))?.attributes).toMatchObject({ color });
      }, 5_000);
      tookMs.push(systemClock.monotonicMs() - editedMs);
    }
    expect(Math.max(...tookMs)).toBeLessThan(1_000);
  }, 30_000);

  it('a killed Squid is Unhealthy, replaced and Ready again, and the edge follows', async () => {
    const before = await proxy('sample-2');
    const [squid] = squidAt(before.ip);
    if (squid === undefined) throw new Error('no squid');
    const seen = { phases: new Set<string>(), unhealthyAtEdge: false };
    process.kill(squid.pid, 'SIGKILL');
    await eventually(async () => {
      const [{ phase, ip }, listed] = await Promise.all([proxy('sample-2'), atEdge('sample-2')]);
      seen.phases.add(phase);
      seen.unhealthyAtEdge ||= listed?.healthy !== true;
      expect(phase).toBe('Ready');
      expect(ip).not.toBe('');
      expect(squidAt(ip).some((one) => one.pid !== squid.pid)).toBe(true);
    }, 30_000);
    expect([...seen.phases]).toContain('Unhealthy');
    expect(seen.unhealthyAtEdge).toBe(true);
    const { ip } = await proxy('sample-2');
    // The replacement leaves by an address of its own: bans of the old one are not its.
    expect(ip).not.toBe(before.ip);
    await eventually(async () => {
      expect(await atEdge('sample-2')).toMatchObject({ healthy: true, host: ip, egressIP: ip });
    });
  }, 60_000);

  it('a killed edge comes back with its leases and cooldowns', async () => {
    const target = 'shop.example.com';
    const held = await leases.acquire({ selector: { color: 'blue' }, target });
    await leases.report(held.leaseID, { result: 'banned' });
    await expect(leases.acquire({ selector: { color: 'blue' }, target })).rejects.toMatchObject({
      code: 'no_match',
      body: { considered: 1, inCooldown: 1 },
    });
    // The runtime itself: what started it would leave it answering for a moment longer.
    const edge = stack.processNamed('bin/workerd');
    process.kill(edge.pid, 'SIGKILL');
    await eventually(() => expect(isRunning(edge)).toBe(false));
    const again = await eventually(() => leases.get(held.leaseID), 30_000);
    expect(again).toMatchObject({ token: held.token, proxy: { name: 'sample-1' } });
    await eventually(async () => {
      const refused = await leases
        .acquire({ selector: { color: 'blue' }, target })
        .catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(LeaseApiError);
      expect(refused).toMatchObject({ body: { inCooldown: 1 } });
    }, 20_000);
    const later = await leases.acquire({ selector: { color: 'blue' } });
    expect(later.token).toBeGreaterThan(held.token);
  }, 90_000);

  it('a killed agent is started again and proxies stay as they are', async () => {
    const before = await proxy('sample-3');
    const agent = stack.processNamed('agent/main.ts');
    process.kill(agent.pid, 'SIGKILL');
    await eventually(() => {
      expect(stack.processNamed('agent/main.ts').pid).not.toBe(agent.pid);
    }, 20_000);
    await eventually(async () => {
      const { agents } = await leases.stats();
      expect(agents).toMatchObject([{ cluster: 'local', proxies: 3, stale: false }]);
      expect(agents[0]?.lastSyncAgeSeconds).toBeLessThan(3);
    }, 20_000);
    expect(await proxy('sample-3')).toEqual(before);
    expect(squidAt(before.ip)).toHaveLength(1);
  }, 60_000);

  it('a Proxy that breaks the rules is refused with the field named', async () => {
    const create = (spec: JsonObject) => createProxy(kube, 'wrong', spec);
    await expect(create({ mode: 'Managed' })).rejects.toThrow('spec.provider');
    await expect(create({ mode: 'External', provider: 'local' })).rejects.toThrow('spec.endpoint');
    await expect(create({ provider: 'local', port: 0 })).rejects.toThrow('spec.port');
  });

  it('a Proxy that drains keeps its leases, gives out no more, and goes when they are over', async () => {
    const attributes = { job: 'drain' };
    await patchSpec('sample-2', { drainSeconds: 60, attributes });
    const lease = await eventually(() => leases.acquire({ selector: attributes }), 10_000);
    const { ip } = await proxy('sample-2');
    await patchSpec('sample-2', { port: 3129 });
    await eventually(async () => {
      expect(await proxy('sample-2')).toMatchObject({ phase: 'Draining', ip });
      expect(await atEdge('sample-2')).toMatchObject({ draining: true, activeLeases: 1 });
    }, 10_000);
    await expect(leases.acquire({ selector: attributes })).rejects.toMatchObject({
      code: 'no_match',
    });
    expect(await leases.renew(lease.leaseID)).toMatchObject({ leaseID: lease.leaseID });
    expect(squidAt(ip)).toHaveLength(1);
    await leases.release(lease.leaseID);
    await eventually(async () => {
      expect(await atEdge('sample-2')).toMatchObject({ healthy: true, port: 3129 });
      expect(await proxy('sample-2')).toMatchObject({ phase: 'Ready' });
    }, 40_000);
    expect(squidAt(ip)).toEqual([]);
  }, 90_000);

  it('a deleted Proxy takes its Squid and its leases with it', async () => {
    const { ip } = await proxy('sample-3');
    expect(squidAt(ip)).toHaveLength(1);
    await patchSpec('sample-3', { attributes: { only: 'this' } });
    const lease = await eventually(() => leases.acquire({ selector: { only: 'this' } }));
    await kube.request({ method: 'DELETE', path: `${PROXIES}/sample-3` });
    await eventually(async () => {
      await expect(proxy('sample-3')).rejects.toMatchObject({ status: 404 });
    }, 20_000);
    expect(squidAt(ip)).toEqual([]);
    await eventually(async () => expect(await atEdge('sample-3')).toBeUndefined());
    await expect(leases.renew(lease.leaseID)).rejects.toMatchObject({ code: 'proxy_gone' });
  }, 60_000);
});
