import { describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject, type JsonValue } from '#deploy/local/control-plane/json.ts';
import {
  builtinColumns,
  crdColumns,
  renderTable,
} from '#deploy/local/control-plane/printing/table.ts';

const NOW = Date.UTC(2026, 0, 2);
const metadata = { name: 'a', namespace: 'n', creationTimestamp: '2026-01-01T00:00:00Z' };

/** Name and cell of every column. */
function row(resource: string, object: JsonObject): Record<string, JsonValue> {
  const columns = builtinColumns(resource);
  const [first] = cells(
    renderTable({ columns, objects: [object], includeObject: 'None', nowMs: NOW }),
  );
  return Object.fromEntries(columns.map(({ name }, index) => [name, first?.[index] ?? null]));
}

function cells(table: JsonObject): JsonValue[][] {
  const rows = Array.isArray(table.rows) ? table.rows.filter(isJsonObject) : [];
  return rows.map((item) => (Array.isArray(item.cells) ? item.cells : []));
}

describe('a table of custom resources', () => {
  const columns = crdColumns([
    { name: 'Mode', type: 'string', jsonPath: '.spec.mode' },
    { name: 'Latency', type: 'integer', jsonPath: '.status.latencyMillis' },
    { name: 'Load', type: 'number', jsonPath: '.status.load' },
    { name: 'Paused', type: 'boolean', jsonPath: '.spec.paused' },
    { name: 'Seen', type: 'date', jsonPath: '.status.seen' },
    {
      name: 'Reason',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
      priority: 1,
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'How old.' },
  ]);
  const full = {
    metadata,
    spec: { mode: 'Managed', paused: false },
    status: {
      latencyMillis: 12.7,
      load: 0.5,
      seen: '2026-01-01T23:59:30Z',
      conditions: [{ type: 'Ready', reason: 'Up' }],
    },
  };

  it('shows the name first, typed cells, and nothing where there is nothing', () => {
    const objects = [full, { metadata: { name: 'b' }, spec: { mode: 3, paused: 'no' } }];
    const table = renderTable({ columns, objects, includeObject: 'None', nowMs: NOW });
    expect(cells(table)).toEqual([
      ['a', 'Managed', 12, 0.5, false, '30s', 'Up', '24h'],
      ['b', '3', null, null, null, null, null, null],
    ]);
  });

  it('describes its columns', () => {
    const table = renderTable({
      columns,
      objects: [],
      includeObject: 'None',
      nowMs: NOW,
      metadata: { resourceVersion: '7' },
    });
    expect(table).toMatchObject({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: '7' },
      rows: [],
    });
    const definitions = Array.isArray(table.columnDefinitions) ? table.columnDefinitions : [];
    expect(definitions).toHaveLength(8);
    expect(definitions[0]).toMatchObject({
      name: 'Name',
      type: 'string',
      format: 'name',
      priority: 0,
    });
    expect(definitions[6]).toMatchObject({ name: 'Reason', priority: 1 });
    expect(definitions[7]).toEqual({
      name: 'Age',
      type: 'date',
      format: '',
      description: 'How old.',
      priority: 0,
    });
  });

  it('carries metadata, the object, or nothing beside the cells', () => {
    const request = { columns, objects: [full], nowMs: NOW };
    expect(renderTable({ ...request, includeObject: 'Metadata' }).rows).toMatchObject([
      { object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata } },
    ]);
    expect(renderTable({ ...request, includeObject: 'Object' }).rows).toMatchObject([
      { object: full },
    ]);
    expect(JSON.stringify(renderTable({ ...request, includeObject: 'None' }).rows)).not.toContain(
      '"object"',
    );
    expect(
      renderTable({ ...request, includeObject: 'None', omitColumns: true }).columnDefinitions,
    ).toBeNull();
  });

  it('shows the age of a kind without columns, and tolerates a path that is none', () => {
    expect(crdColumns().map(({ name }) => name)).toEqual(['Name', 'Age']);
    const [, broken] = crdColumns([{ name: 'X', type: 'string', jsonPath: '.a[' }]);
    expect(broken?.cell(full, NOW)).toBeNull();
  });
});

describe('the table of pods', () => {
  const pod = (status: JsonObject, rest: JsonObject = {}): JsonObject => ({
    metadata: { ...metadata, ...rest },
    spec: { containers: [{ name: 'c' }, { name: 'd' }], nodeName: 'local' },
    status,
  });
  const running = { state: { running: {} }, ready: true, restartCount: 0 };
  const exited = (reason: string, exitCode: number) => ({
    state: { terminated: { reason, exitCode } },
    ready: false,
    restartCount: 2,
  });

  it.each<[string, JsonObject, JsonObject, string, string]>([
    [
      'a running pod',
      { phase: 'Running', containerStatuses: [running, running] },
      {},
      '2/2',
      'Running',
    ],
    [
      'a pod that waits',
      {
        phase: 'Pending',
        containerStatuses: [{ state: { waiting: { reason: 'ImagePullBackOff' } } }],
      },
      {},
      '0/2',
      'ImagePullBackOff',
    ],
    ['a pod without statuses', { phase: 'Pending' }, {}, '0/2', 'Pending'],
    [
      'a failed pod',
      { phase: 'Failed', containerStatuses: [exited('Error', 1)] },
      {},
      '0/2',
      'Error',
    ],
    [
      'a pod with an exit code alone',
      { phase: 'Failed', containerStatuses: [exited('', 3)] },
      {},
      '0/2',
      'ExitCode:3',
    ],
    ['an evicted pod', { phase: 'Failed', reason: 'Evicted' }, {}, '0/2', 'Evicted'],
    [
      'a pod that starts',
      { phase: 'Pending', initContainerStatuses: [{ state: { running: {} } }] },
      {},
      '0/2',
      'Init:0/0',
    ],
    [
      'a deleted pod',
      { phase: 'Running', containerStatuses: [running] },
      { deletionTimestamp: 't' },
      '1/2',
      'Terminating',
    ],
    [
      'a lost pod',
      { phase: 'Running', reason: 'NodeLost' },
      { deletionTimestamp: 't' },
      '0/2',
      'Unknown',
    ],
    [
      'a pod that is half over',
      { phase: 'Running', containerStatuses: [exited('Completed', 0), running] },
      {},
      '1/2',
      'NotReady',
    ],
  ])('shows %s', (_name, status, rest, ready, text) => {
    expect(row('pods', pod(status, rest))).toMatchObject({ Ready: ready, Status: text });
  });

  it('shows restarts with the time of the last, and where the pod runs', () => {
    const lastState = { terminated: { finishedAt: '2026-01-01T23:55:00Z' } };
    const status = {
      phase: 'Running',
      podIP: '127.42.0.2',
      containerStatuses: [{ ...running, restartCount: 3, lastState }],
    };
    expect(row('pods', pod(status))).toMatchObject({
      Name: 'a',
      Restarts: '3 (5m ago)',
      Age: '24h',
      IP: '127.42.0.2',
      Node: 'local',
      'Nominated Node': '<none>',
      'Readiness Gates': '<none>',
    });
  });
});

describe('tables of other built-in kinds', () => {
  it.each<[string, JsonObject, JsonObject]>([
    ['namespaces', { status: { phase: 'Active' } }, { Name: 'a', Status: 'Active', Age: '24h' }],
    ['secrets', { type: 'Opaque', data: { x: '', y: '' } }, { Type: 'Opaque', Data: '2' }],
    ['configmaps', { data: { x: '' }, binaryData: { y: '' } }, { Data: '2' }],
    ['serviceaccounts', {}, { Secrets: '0', Age: '24h' }],
    ['leases', { spec: { holderIdentity: 'me' } }, { Holder: 'me' }],
    ['roles', {}, { Name: 'a', 'Created At': '2026-01-01T00:00:00Z' }],
    ['customresourcedefinitions', {}, { Name: 'a', 'Created At': '2026-01-01T00:00:00Z' }],
    ['constructor', {}, { Name: 'a', 'Created At': '2026-01-01T00:00:00Z' }],
    [
      'rolebindings',
      {
        roleRef: { kind: 'Role', name: 'r' },
        subjects: [
          { kind: 'User', name: 'u' },
          { kind: 'ServiceAccount', name: 's', namespace: 'n' },
        ],
      },
      { Role: 'Role/r', Users: 'u', Groups: '', ServiceAccounts: 'n/s' },
    ],
    [
      'nodes',
      {
        metadata: { ...metadata, labels: { 'node-role.kubernetes.io/worker': '' } },
        spec: { unschedulable: true },
        status: {
          conditions: [{ type: 'Ready', status: 'True' }],
          nodeInfo: { kubeletVersion: 'v1' },
        },
      },
      {
        Status: 'Ready,SchedulingDisabled',
        Roles: 'worker',
        Version: 'v1',
        'OS-Image': '<unknown>',
      },
    ],
    [
      'services',
      {
        spec: { type: 'ClusterIP', clusterIP: '10.0.0.1', ports: [{ port: 80, protocol: 'TCP' }] },
      },
      {
        'Cluster-IP': '10.0.0.1',
        'External-IP': '<none>',
        'Port(s)': '80/TCP',
        Selector: '<none>',
      },
    ],
    [
      'events',
      {
        type: 'Normal',
        reason: 'Created',
        message: 'made it\n',
        count: 3,
        firstTimestamp: '2026-01-01T23:00:00Z',
        lastTimestamp: '2026-01-01T23:59:00Z',
        involvedObject: { kind: 'Proxy', name: 'p' },
        source: { component: 'agent' },
      },
      { 'Last Seen': '60s', Object: 'proxy/p', Message: 'made it', Count: 3, Source: 'agent' },
    ],
    [
      'events',
      {
        type: 'Warning',
        reason: 'Quota',
        note: 'no more',
        eventTime: '2026-01-01T23:00:00.000000Z',
        series: { count: 4, lastObservedTime: '2026-01-01T23:59:00Z' },
        regarding: { kind: 'Proxy', name: 'p' },
        reportingController: 'agent',
        reportingInstance: 'agent-1',
      },
      {
        'Last Seen': '60s (x4 over 60m)',
        Object: 'proxy/p',
        Message: 'no more',
        Source: 'agent, agent-1',
      },
    ],
  ])('%s', (resource, object, expected) => {
    expect(row(resource, { metadata, ...object })).toMatchObject(expected);
  });
});
