import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sendPodLog } from '#deploy/local/control-plane/http/pod-log.ts';
import { ANONYMOUS } from '#deploy/local/control-plane/http/users.ts';
import { startTestServer, type TestServer } from './api-client.ts';

const PODS = '/api/v1/namespaces/default/pods';
const POD = {
  metadata: { name: 'p' },
  spec: { nodeName: 'n', containers: [{ name: 'squid', image: 'squid' }] },
};

describe('logs of pods', () => {
  let folder: string;
  let file: string;
  let server: TestServer;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pod-log-'));
    file = join(folder, 'p.log');
    const podLog = (namespace: string, name: string) =>
      namespace === 'default' && name === 'p' ? file : undefined;
    server = await startTestServer({ podLog });
    await server.call(PODS, { method: 'POST', body: POD });
  });
  afterEach(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  /** A followed log that waits for more; controllers have timers of their own. */
  const follow = async () => {
    const timers = server.clock.pendingTimers;
    const ended = server.call(`${PODS}/p/log?follow=true`);
    await expect.poll(() => server.clock.pendingTimers).toBe(timers + 1);
    return { ended };
  };

  it.each([
    ['', 'one\ntwo\nthree\n'],
    ['?tailLines=2', 'two\nthree\n'],
    ['?tailLines=1', 'three\n'],
    ['?tailLines=9', 'one\ntwo\nthree\n'],
    ['?tailLines=0', ''],
  ])('are what the pod wrote: %s', async (query, expected) => {
    writeFileSync(file, 'one\ntwo\nthree\n');
    const { status, text } = await server.call(`${PODS}/p/log${query}`);
    expect([status, text]).toEqual([200, expected]);
  });

  it('are empty while the pod has written nothing', async () => {
    expect(await server.call(`${PODS}/p/log`)).toMatchObject({ status: 200, text: '' });
  });

  it('go on as they grow, until the pod is over', async () => {
    writeFileSync(file, 'one\n');
    const answer = await follow();
    appendFileSync(file, 'two\n');
    await server.call(`${PODS}/p/status`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { status: { phase: 'Failed' } },
    });
    await server.clock.advance(1000);
    expect((await answer.ended).text).toBe('one\ntwo\n');
  });

  it('end when the server closes', async () => {
    writeFileSync(file, 'one\n');
    const answer = await follow();
    await server.controlPlane.close();
    expect((await answer.ended).text).toBe('one\n');
    expect(server.clock.pendingTimers).toBe(0);
  });

  it('end for a client that left before it could be written to', async () => {
    writeFileSync(file, 'x'.repeat(64 * 1024));
    const gone = new AbortController();
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    const exchange = {
      request: response.req,
      response,
      url: new URL('https://control-plane/'),
      user: ANONYMOUS,
      signal: gone.signal,
    };
    let reads = 0;
    const leaving = () => {
      if (++reads === 2) gone.abort();
      return file;
    };
    await sendPodLog(exchange, server.clock, leaving, () => false);
    expect([reads, response.writableEnded]).toEqual([2, true]);
  });

  it('are not found for a pod that is not there', async () => {
    const { status, json } = await server.call(`${PODS}/none/log`);
    expect(status).toBe(404);
    expect(json.message).toBe('pods "none" not found');
  });

  it.each([
    ['a senseless number of lines', 'tailLines=few', 'tailLines: "few" is not a whole number'],
    ['another container', 'container=sidecar', 'container sidecar is not valid for pod p'],
    ['an earlier run', 'previous=true', 'previous terminated container "squid" in pod "p" not'],
  ])('are refused for %s', async (_what, query, message) => {
    const { status, json } = await server.call(`${PODS}/p/log?${query}`);
    expect([status, json.message]).toEqual([400, expect.stringContaining(message)]);
  });

  it('are those of the container that is named', async () => {
    writeFileSync(file, 'one\n');
    expect((await server.call(`${PODS}/p/log?container=squid`)).text).toBe('one\n');
  });
});
