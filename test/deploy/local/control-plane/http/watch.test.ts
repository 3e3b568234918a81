import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nameOf, objectAt } from '#deploy/local/control-plane/api/object-meta.ts';
import { objects } from '#deploy/local/control-plane/json.ts';
import {
  installManifests,
  PROXIES,
  PROXY,
  startTestServer,
  type TestServer,
} from './api-client.ts';

const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

describe('watches over HTTP', () => {
  let server: TestServer;

  beforeEach(async () => {
    server = await startTestServer();
  });
  afterEach(async () => await server[Symbol.asyncDispose]());

  const create = (name: string) =>
    server.call(CONFIG_MAPS, { method: 'POST', body: { metadata: { name } } });

  it('stream one JSON line for each change', async () => {
    const { json } = await server.call(CONFIG_MAPS);
    const version = String(objectAt(json, 'metadata').resourceVersion);
    const lines = await server.watch(`${CONFIG_MAPS}?watch=true&resourceVersion=${version}`);
    await create('one');
    await server.call(`${CONFIG_MAPS}/one`, { method: 'DELETE' });
    expect([await lines.next(), await lines.next()]).toMatchObject([
      { type: 'ADDED', object: { kind: 'ConfigMap', metadata: { name: 'one' } } },
      { type: 'DELETED', object: { kind: 'ConfigMap', metadata: { name: 'one' } } },
    ]);
  });

  it('send tables, with columns in the first alone', async () => {
    await installManifests(server);
    await server.call(PROXIES, { method: 'POST', body: PROXY });
    const lines = await server.watch(`${PROXIES}?watch=1`, TABLE);
    await server.call(PROXIES, { method: 'POST', body: { ...PROXY, metadata: { name: 'b' } } });
    const tables = [await lines.next(), await lines.next()].map((line) =>
      objectAt(line ?? {}, 'object'),
    );
    expect(tables.map(({ kind }) => kind)).toEqual(['Table', 'Table']);
    expect(tables.map(({ columnDefinitions }) => columnDefinitions === null)).toEqual([
      false,
      true,
    ]);
    const names = tables.flatMap((table) =>
      objects(table.rows).map((row) => objectAt(row, 'object')),
    );
    expect(names.map(nameOf)).toEqual(['a', 'b']);
  });

  it('end when their time is up', async () => {
    const lines = await server.watch(`${CONFIG_MAPS}?watch=1&timeoutSeconds=5`);
    await server.clock.advance(5000);
    expect(await lines.next()).toBeUndefined();
  });

  it('end by themselves within an hour', async () => {
    const lines = await server.watch(`${CONFIG_MAPS}?watch=1`);
    await server.clock.advance(3_600_000);
    expect(await lines.next()).toBeUndefined();
  });

  it('tell that their version is compacted', async () => {
    await create('one');
    server.controlPlane.compact();
    const lines = await server.watch(`${CONFIG_MAPS}?watch=1&resourceVersion=1`);
    const event = await lines.next();
    expect(event).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } });
    expect(await lines.next()).toBeUndefined();
  });

  it('end when the server closes', async () => {
    const lines = await server.watch(`${CONFIG_MAPS}?watch=1`);
    const closed = server.controlPlane.close();
    expect(await lines.next()).toBeUndefined();
    await closed;
    expect(server.clock.pendingTimers).toBe(0);
  });

  it('are refused with a Status when they make no sense', async () => {
    const { status, json } = await server.call(`${CONFIG_MAPS}?watch=1&labelSelector=a=(`);
    expect(status).toBe(400);
    expect(json).toMatchObject({ kind: 'Status', reason: 'BadRequest' });
  });

  it('cut off a client that has stopped to read', async () => {
    const lines = await server.watch(`${CONFIG_MAPS}?watch=1`);
    const data = { a: 'x'.repeat(500_000) };
    const body = { metadata: { name: 'big' }, data };
    await server.call(CONFIG_MAPS, { method: 'POST', body });
    const total = 40;
    for (let change = 0; change < total; change++) {
      const labels = { change: String(change) };
      const next = { metadata: { name: 'big', labels }, data };
      await server.call(`${CONFIG_MAPS}/big`, { method: 'PUT', body: next });
    }
    await server.clock.advance(30_000);
    let received = 0;
    const readAll = async () => {
      while ((await lines.next()) !== undefined) received++;
    };
    await expect(readAll()).rejects.toThrow();
    expect(received).toBeLessThan(total);
  });
});
