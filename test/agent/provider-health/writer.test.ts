import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createKubeClient, type KubeClient } from '#agent/kube/client.ts';
import { isKubeError } from '#agent/kube/errors.ts';
import { reportStatus } from '#agent/provider-health/report.ts';
import { createHealthWriter, type HealthWriter } from '#agent/provider-health/writer.ts';
import { LeadershipLostError } from '#agent/runtime/leadership.ts';
import { systemClock } from '#shared/clock.ts';
import type { ProviderHealthStatus } from '#shared/crd/provider-health.ts';
import {
  installManifests,
  startTestServer,
  type TestServer,
} from '#test/deploy/local/control-plane/http/api-client.ts';

const PATH = '/apis/crawl.example.com/v1alpha1/providerhealths';
const never = new AbortController().signal;
const up = { name: 'host', ready: true, reason: 'Reachable', message: '', details: { free: '1' } };

let server: TestServer;
let client: KubeClient;
/** Requests that changed something, in order. */
let changes: string[] = [];
let held = true;

beforeAll(async () => {
  server = await startTestServer();
  await installManifests(server);
  const { url, adminToken, caPem } = server.controlPlane;
  const bare = createKubeClient({
    access: {
      server: url,
      credentials: async () => ({
        headers: { authorization: `Bearer ${adminToken}` },
        tls: { ca: caPem },
      }),
      refresh: () => {},
    },
    clock: systemClock,
    userAgent: 'test',
  });
  client = {
    ...bare,
    request(request, signal) {
      const { method = 'GET', path } = request;
      if (method !== 'GET') changes.push(`${method} ${path.slice(PATH.length)}`);
      return bare.request(request, signal);
    },
  };
});
afterAll(async () => {
  await client.close();
  await server[Symbol.asyncDispose]();
});

beforeEach(async () => {
  held = true;
  await writer('ours').prune(new Set(), never);
  changes = [];
});

function writer(installation: string): HealthWriter {
  const assertHeld = () => {
    if (!held) throw new LeadershipLostError('another process may lead');
  };
  return createHealthWriter({ client, installation, leadership: { assertHeld } });
}

const report = (ready: boolean, second: number) => (previous?: ProviderHealthStatus) =>
  reportStatus(
    { type: 'kvm', targets: [{ ...up, ready }], checkedAtMs: Date.UTC(2026, 0, 1, 0, 0, second) },
    previous,
  );
const stored = async (name: string) => (await server.call(`${PATH}/${name}`)).json;
const names = async () => {
  const { items } = (await server.call(PATH)).json;
  return Array.isArray(items) ? items.map((item) => Object(item).metadata.name) : [];
};
const create = (name: string, labels: Record<string, string>) =>
  server.call(PATH, {
    method: 'POST',
    body: {
      apiVersion: 'crawl.example.com/v1alpha1',
      kind: 'ProviderHealth',
      metadata: { name, labels },
    },
  });

describe('a report', () => {
  test('makes the object with who manages it, then writes its status alone', async () => {
    await writer('ours').write('local', report(true, 0), never);
    expect(changes).toEqual(['POST ', 'PATCH /local/status']);
    await writer('ours').write('local', report(false, 30), never);
    expect(changes.slice(2)).toEqual(['PATCH /local/status']);
    expect(await stored('local')).toMatchObject({
      metadata: {
        labels: {
          'app.kubernetes.io/managed-by': 'egress-agent',
          'proxy-operator-installation': 'ours',
        },
      },
      status: {
        type: 'kvm',
        ready: 'False',
        targets: '0/1',
        targetStatuses: [{ name: 'host', lastTransitionTime: '2026-01-01T00:00:30.000Z' }],
      },
    });
  });

  test('finds the transition time that an earlier agent wrote', async () => {
    await writer('ours').write('local', report(true, 0), never);
    await writer('ours').write('local', report(true, 50), never);
    expect(await stored('local')).toMatchObject({
      status: {
        lastCheckTime: '2026-01-01T00:00:50.000Z',
        targetStatuses: [{ lastTransitionTime: '2026-01-01T00:00:00.000Z' }],
      },
    });
  });

  test('leaves nothing of the status before, and is not written twice when nothing moves', async () => {
    await writer('ours').write('local', report(true, 0), never);
    const unsupported = (previous?: ProviderHealthStatus) =>
      reportStatus({ type: 'memory', checkedAtMs: 0 }, previous);
    await writer('ours').write('local', unsupported, never);
    const { status } = await stored('local');
    expect(Object.keys(Object(status)).sort()).toEqual(['message', 'ready', 'reason', 'type']);
    const before = changes.length;
    await writer('ours').write('local', unsupported, never);
    expect(changes).toHaveLength(before);
  });

  test('on a name that no object can have is refused, and told to the caller', async () => {
    const refused = writer('ours').write('a..b', report(true, 0), never);
    await expect(refused).rejects.toSatisfy((error) => isKubeError(error, 'Invalid'));
  });

  test('is not written without leadership', async () => {
    held = false;
    await expect(writer('ours').write('local', report(true, 0), never)).rejects.toBeInstanceOf(
      LeadershipLostError,
    );
    expect(changes).toEqual([]);
  });

  test('shows in the columns of a table', async () => {
    await writer('ours').write('local', report(true, 0), never);
    await server.clock.advance(12_000);
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
    const { json } = await server.call(PATH, { headers: { accept } });
    const table = Object(json);
    expect(table.columnDefinitions.map(({ name }: { name: string }) => name)).toEqual([
      'Name',
      'Type',
      'Ready',
      'Targets',
      'Last Check',
      'Age',
    ]);
    expect(table.rows[0].cells).toEqual(['local', 'kvm', 'True', '1/1', '12s', '12s']);
  });
});

describe('cleaning up', () => {
  const managed = { 'app.kubernetes.io/managed-by': 'egress-agent' };

  test('deletes our objects that are not to be kept, and no others', async () => {
    await writer('ours').write('kept', report(true, 0), never);
    await writer('ours').write('stale', report(true, 0), never);
    await writer('theirs').write('foreign', report(true, 0), never);
    await create('by-hand', {});
    await create('unnamed-owner', managed);
    const deleted = await writer('ours').prune(new Set(['kept']), never);
    expect(deleted.sort()).toEqual(['stale', 'unnamed-owner']);
    expect((await names()).sort()).toEqual(['by-hand', 'foreign', 'kept']);
  });

  test('does not delete without leadership', async () => {
    await create('stale', managed);
    held = false;
    const pruning = writer('ours').prune(new Set(), never);
    await expect(pruning).rejects.toBeInstanceOf(LeadershipLostError);
    expect(await names()).toContain('stale');
  });
});
