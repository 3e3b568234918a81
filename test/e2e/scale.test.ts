/** Two hundred External proxies at once: how soon the edge offers them, how much the agent takes. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { type Listening, listenForwardProxy } from '#test/fakes/proxies.ts';
import { eventually } from '#test/integration/eventually.ts';
import { createProxy } from '#test/integration/proxy-objects.ts';
import { cannotRun, cleanUp, newStateDir, type Stack, startStack, whole } from './stack.ts';

const COUNT = 200;
const LISTED_MS_MAX = 15_000;
const AGENT_RSS_MIB_MAX = 200;

let stack: Stack;
let forward: Listening;

/** Resident memory of the agent in MiB. */
function agentRssMib(): number {
  const { pid } = stack.processNamed('agent/main.ts');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

describe.skipIf(cannotRun !== undefined)(whole(`${COUNT} External proxies`), () => {
  beforeAll(async () => {
    forward = await listenForwardProxy();
    stack = startStack(newStateDir(), ['--proxies=1']);
    await stack.step('fetched');
  }, 90_000);
  afterAll(async () => {
    await cleanUp();
    await forward?.close();
  }, 30_000);

  it(`are all healthy at the edge within ${LISTED_MS_MAX / 1000} s, the agent small`, async () => {
    const kube = stack.kube();
    const leases = stack.leases();
    const appliedMs = systemClock.monotonicMs();
    const creating = Array.from({ length: COUNT }, (_, index) =>
      createProxy(kube, `external-${index}`, {
        mode: 'External',
        endpoint: { host: '127.0.0.1', port: forward.port },
        attributes: { pool: 'external' },
      }),
    );
    await Promise.all(creating);
    await eventually(async () => {
      const attributes = { pool: 'external' };
      const { count } = await leases.proxies({ attributes, healthy: true, limit: 1 });
      expect(count).toBe(COUNT);
    }, 60_000);
    const tookMs = systemClock.monotonicMs() - appliedMs;
    expect(forward.connections).toBeGreaterThanOrEqual(COUNT);
    expect(tookMs).toBeLessThan(LISTED_MS_MAX);
    expect(agentRssMib()).toBeLessThan(AGENT_RSS_MIB_MAX);
    // Probing goes on: after another round of it the agent is no larger.
    const probed = forward.connections;
    await eventually(() => expect(forward.connections).toBeGreaterThan(probed + COUNT), 30_000);
    expect(agentRssMib()).toBeLessThan(AGENT_RSS_MIB_MAX);
    process.stdout.write(`${COUNT} proxies listed after ${Math.round(tookMs)} ms, `);
    process.stdout.write(`agent at ${Math.round(agentRssMib())} MiB\n`);
    await kube.close();
  }, 120_000);
});
