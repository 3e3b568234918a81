/** Bytes that no HTTP client sends, against the real runtime: nothing breaks, and nobody else notices. */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bearer, CRAWLER_TOKEN, startEdge } from '../workerd/edge.ts';
import type { Runtime } from '../workerd/runtime.ts';

const RUNS = 300;
/** For the answer to a request that may never be complete. */
const ANSWER_MS = 2_000;
const HEADERS = ['authorization', 'content-type', 'content-encoding', 'idempotency-key', 'x-any'];

const dir = mkdtempSync(join(tmpdir(), 'raw-'));
let edge: Runtime;

beforeAll(async () => {
  edge = await startEdge({ dir, shards: 2 });
}, 60_000);

afterAll(async () => {
  await edge?.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** The status of the answer; undefined when the connection was closed without one. */
function statusOf(request: Uint8Array): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(edge.port, '127.0.0.1');
    let answer = '';
    const end = () => {
      socket.destroy();
      const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(answer) ?? [];
      resolve(status === undefined ? undefined : Number(status));
    };
    socket.setTimeout(ANSWER_MS, () => reject(new Error('no answer')));
    socket.on('data', (bytes) => {
      answer += bytes.toString('latin1');
      if (/^HTTP\/1\.1 \d{3}/.test(answer)) end();
    });
    socket.on('error', end);
    socket.on('close', end);
    socket.end(request);
  });
}

const bytes = fc
  .uint8Array({ maxLength: 40 })
  .map((all) => all.filter((byte) => byte !== 10 && byte !== 13));
const headers = fc.array(fc.tuple(fc.constantFrom(...HEADERS), bytes), { maxLength: 4 });
const paths = fc.oneof(fc.constant(Buffer.from('/v1/leases')), bytes.map(Buffer.from));

function requestOf(path: Uint8Array, lines: [string, Uint8Array][], body: Uint8Array): Buffer {
  const sent = lines.flatMap(([name, value]) => [Buffer.from(`${name}: `), value, CRLF]);
  const head = [Buffer.from('POST '), path, Buffer.from(' HTTP/1.1\r\nhost: edge\r\n'), ...sent];
  const known = `authorization: Bearer ${CRAWLER_TOKEN}\r\ncontent-length: ${body.length}\r\n\r\n`;
  return Buffer.concat([...head, Buffer.from(known), body]);
}

const CRLF = Buffer.from('\r\n');

it('any bytes in path, headers and body are refused or served, and never cause a 500', async () => {
  const seen = new Set<number | undefined>();
  await fc.assert(
    fc.asyncProperty(paths, headers, bytes, async (path, lines, body) => {
      const status = await statusOf(requestOf(path, lines, body));
      seen.add(status);
      expect(status ?? 400).toBeLessThan(500);
    }),
    { numRuns: RUNS },
  );
  expect(seen).toContain(400);
  const after = await fetch(`${edge.url}/v1/stats`, { headers: bearer(CRAWLER_TOKEN) });
  expect(after.status).toBe(200);
}, 60_000);
