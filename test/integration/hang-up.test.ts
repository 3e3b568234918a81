/**
 * Crawlers that hang up while they wait, against the real runtime: how a Worker learns of it
 * depends on how the connection ends.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLeaseClient, type LeaseClient } from '#shared/client/lease-client.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { AGENT_TOKEN, bearer, CRAWLER_TOKEN, startEdge } from '../workerd/edge.ts';
import type { Runtime } from '../workerd/runtime.ts';

for (const shards of [1, 3]) {
  describe(`a crawler that hangs up while it waits, with ${shards} shards`, () => {
    const dir = mkdtempSync(join(tmpdir(), 'hang-up-'));
    let edge: Runtime;
    let leases: LeaseClient;
    let sessions = 0;

    beforeAll(async () => {
      edge = await startEdge({ dir, shards });
      leases = createLeaseClient({ baseUrl: edge.url, token: CRAWLER_TOKEN });
    }, 60_000);

    afterAll(async () => {
      await edge?.stop();
      rmSync(dir, { recursive: true, force: true });
    });

    beforeEach(async () => {
      await syncOne(edge.url, `s${++sessions}`);
    });

    const waiting = async () => (await leases.stats()).waiting;
    const until = async (reached: () => Promise<boolean>) => {
      const endMs = clock.monotonicMs() + 5_000;
      while (!(await reached())) {
        if (clock.monotonicMs() > endMs) throw new Error('not reached within 5 s');
        await clock.sleep(10);
      }
    };

    it('by a reset leaves the queue at once', async () => {
      const held = await leases.acquire();
      const socket = await askByHand(edge.port);
      await until(async () => (await waiting()) === shards);
      socket.resetAndDestroy();
      await until(async () => (await waiting()) === 0);
      await leases.release(held.leaseID);
      expect(await leases.stats()).toMatchObject({ leases: { active: 0 } });
    });

    it('by closing gives back what it is granted, and the next one gets that', async () => {
      const held = await leases.acquire();
      const socket = await askByHand(edge.port);
      await until(async () => (await waiting()) === shards);
      socket.destroy();
      await clock.sleep(100);
      const next = leases.acquire({ waitSeconds: 10 });
      await until(async () => (await waiting()) === 2 * shards);
      await leases.release(held.leaseID);
      const granted = await next;
      await leases.release(granted.leaseID);
      await until(async () => (await leases.stats()).leases.active === 0);
      expect(await waiting()).toBe(0);
    });

    it('by an abort of fetch keeps no lease either', async () => {
      const held = await leases.acquire();
      const hangUp = new AbortController();
      const asking = leases.acquire({ waitSeconds: 20 }, hangUp.signal).catch(() => undefined);
      await until(async () => (await waiting()) === shards);
      await clock.sleep(100);
      hangUp.abort();
      await asking;
      await leases.release(held.leaseID);
      await until(async () => (await leases.stats()).leases.active === 0);
      expect((await leases.acquire({ waitSeconds: 5 })).proxy.name).toBe('a');
    });

    it('not at all gets its lease, whole', async () => {
      const held = await leases.acquire();
      const asking = leases.acquire({ waitSeconds: 10 });
      await until(async () => (await waiting()) === shards);
      await leases.release(held.leaseID);
      const granted = await asking;
      expect(await leases.get(granted.leaseID)).toMatchObject({ token: granted.token });
    });
  });
}

/** Sends a request that waits, without a client that would tidy up. */
async function askByHand(port: number): Promise<Socket> {
  const body = JSON.stringify({ waitSeconds: 20 });
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(
    `POST /v1/leases HTTP/1.1\r\nhost: edge\r\nauthorization: Bearer ${CRAWLER_TOKEN}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  return socket;
}

/** One proxy for one lease; its machine is a new one, so that earlier leases are over. */
async function syncOne(url: string, session: string): Promise<void> {
  const proxy = {
    uid: 'uid-a',
    namespace: 'crawl',
    name: 'a',
    instance: session,
    host: 'a.example',
    port: 3128,
    protocol: 'http',
    attributes: {},
    maxLeases: 1,
    healthy: true,
    leasable: true,
    draining: false,
  };
  const response = await fetch(`${url}/v1/agents/alpha/sync`, {
    method: 'POST',
    headers: { ...bearer(AGENT_TOKEN), 'content-type': 'application/json' },
    body: JSON.stringify({ term: 1, session, seq: 1, kind: 'full', upserts: [proxy] }),
  });
  expect(response.status).toBe(200);
}
