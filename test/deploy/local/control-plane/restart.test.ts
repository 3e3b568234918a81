import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { objectAt } from '#deploy/local/control-plane/api/object-meta.ts';
import { createControlPlane } from '#deploy/local/control-plane/control-plane.ts';
import { objects } from '#deploy/local/control-plane/json.ts';
import { openSqliteJournal } from '#deploy/local/control-plane/storage/sqlite-journal.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { installManifests, PROXIES, PROXY, startTestServer } from './http/api-client.ts';

describe('a control plane with a state directory', () => {
  let stateDir: string;
  beforeEach(() => {
    stateDir = mkdtempSync(join(tmpdir(), 'control-plane-'));
  });
  afterEach(() => rmSync(stateDir, { recursive: true }));

  const start = () => startTestServer({ stateDir });
  const versionOf = (list: Record<string, unknown>) =>
    Number(objectAt(JSON.parse(JSON.stringify(list)), 'metadata')['resourceVersion']);

  it('has its objects, definitions and versions after a restart', async () => {
    let before: unknown;
    let version = 0;
    {
      await using server = await start();
      await installManifests(server);
      before = (await server.call(PROXIES, { method: 'POST', body: PROXY })).json;
      version = versionOf((await server.call(PROXIES)).json);
    }
    await using server = await start();
    expect((await server.call(`${PROXIES}/a`)).json).toEqual(before);
    const invalid = { ...PROXY, metadata: { name: 'b' }, spec: { mode: 'External' } };
    expect((await server.call(PROXIES, { method: 'POST', body: invalid })).status).toBe(422);
    const next = { ...PROXY, metadata: { name: 'c' } };
    await server.call(PROXIES, { method: 'POST', body: next });
    const list = (await server.call(PROXIES)).json;
    expect(objects(list['items'])).toHaveLength(2);
    expect(versionOf(list)).toBeGreaterThan(version);
  });

  it('answers 410 to a watch from before its history', async () => {
    let version = 0;
    {
      await using server = await start();
      await installManifests(server);
      version = versionOf((await server.call(PROXIES)).json);
      await server.call(PROXIES, { method: 'POST', body: PROXY });
    }
    await using server = await start();
    const lines = await server.watch(`${PROXIES}?watch=true&resourceVersion=${version}`);
    expect(await lines.next()).toMatchObject({ type: 'ERROR', object: { code: 410 } });
  });

  it('keeps its users and its authority', async () => {
    const open = () => createControlPlane({ stateDir, port: 0, clock: new FakeClock() });
    const first = await open();
    await first.close();
    const second = await open();
    await second.close();
    expect(second.adminToken).toBe(first.adminToken);
    expect(second.agentToken).toBe(first.agentToken);
    expect(second.caPem).toBe(first.caPem);
    expect(first.adminToken).not.toBe(first.agentToken);
  });

  it('keeps secrets from other users of the machine', async () => {
    const server = await start();
    await server[Symbol.asyncDispose]();
    const open = readdirSync(stateDir)
      .map((name) => join(stateDir, name))
      .filter((path) => /token|key|credential|sqlite/.test(path))
      .filter((path) => (statSync(path).mode & 0o077) !== 0);
    expect(readdirSync(stateDir)).not.toEqual([]);
    expect(open).toEqual([]);
  });

  it('belongs to one control plane at a time', async () => {
    await using _running = await start();
    const second = createControlPlane({ stateDir, port: 0, clock: new FakeClock() });
    await expect(second).rejects.toThrow('objects.sqlite is in use by another process');
  });

  it.each([
    ['an object that is no JSON', 'configmaps', '{'],
    [
      'a definition that cannot be compiled',
      'customresourcedefinitions.apiextensions.k8s.io',
      JSON.stringify({
        metadata: { name: 'broken' },
        spec: {
          versions: [{ served: true, schema: { openAPIV3Schema: { $ref: '#/definitions/none' } } }],
        },
      }),
    ],
  ])('lets the directory go when it starts on %s', async (_case, resource, text) => {
    const path = join(stateDir, 'objects.sqlite');
    openSqliteJournal(path).close();
    const database = new DatabaseSync(path);
    database.prepare('INSERT INTO objects VALUES (?, ?, ?, ?)').run(resource, '', 'broken', text);
    database.close();
    const clock = new FakeClock();
    await expect(createControlPlane({ stateDir, port: 0, clock })).rejects.toThrow();
    expect(clock.pendingTimers).toBe(0);
    openSqliteJournal(path).close();
  });

  it('says which port is taken and leaves the directory usable', async () => {
    await using server = await startTestServer();
    const { port } = server.controlPlane;
    const clock = new FakeClock();
    await expect(createControlPlane({ stateDir, port, clock })).rejects.toThrow(
      `port ${port} on 127.0.0.1 is in use`,
    );
    expect(clock.pendingTimers).toBe(0);
    await using again = await start();
    expect((await again.call('/healthz')).text).toBe('ok');
  });
});
