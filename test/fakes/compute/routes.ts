/** Which request of the REST API means what; refuses parameters that the method does not have. */
import { ApiFailure, notFound } from './api-failure.ts';
import { parseFilter } from './filter.ts';
import { pageOf } from './pages.ts';
import type { FakeProject } from './project.ts';
import { type Json, objectOf } from './validate.ts';

export interface Call {
  readonly method: string;
  /** Behind `/compute/v1/projects/<project>/`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Json;
}

interface Route {
  readonly method: string;
  readonly pattern: RegExp;
  readonly parameters: readonly string[];
  /** `at` are the groups of the pattern. */
  run(project: FakeProject, at: string[], call: Call): Json | Promise<Json>;
}

const LISTS = ['filter', 'maxResults', 'pageToken', 'orderBy', 'returnPartialSuccess'];

const ROUTES: readonly Route[] = [
  {
    method: 'POST',
    pattern: /^zones\/([^/]+)\/instances$/,
    parameters: ['requestId', 'sourceInstanceTemplate', 'sourceMachineImage'],
    run: (project, [zone = ''], { body, query }) =>
      project.resourceOfOperation(project.insert(zone, body, query.get('requestId') ?? undefined)),
  },
  {
    method: 'GET',
    pattern: /^zones\/([^/]+)\/instances\/([^/]+)$/,
    parameters: ['view'],
    run(project, [zone = '', name = '']) {
      refuseUnreachable(project, zone);
      return project.resourceOf(project.get(zone, name));
    },
  },
  {
    method: 'DELETE',
    pattern: /^zones\/([^/]+)\/instances\/([^/]+)$/,
    parameters: ['requestId', 'noGracefulShutdown'],
    run(project, [zone = '', name = '']) {
      refuseUnreachable(project, zone);
      return project.resourceOfOperation(project.delete(zone, name));
    },
  },
  {
    method: 'POST',
    pattern: /^zones\/([^/]+)\/instances\/([^/]+)\/setLabels$/,
    parameters: ['requestId'],
    run: (project, [zone = '', name = ''], { body }) =>
      project.resourceOfOperation(project.setLabels(zone, name, body)),
  },
  {
    method: 'GET',
    pattern: /^aggregated\/instances$/,
    parameters: [...LISTS, 'includeAllScopes', 'serviceProjectNumber'],
    run: (project, _at, call) => aggregated(project, call),
  },
  {
    method: 'GET',
    pattern: /^zones\/([^/]+)\/operations$/,
    parameters: LISTS,
    run(project, [zone = ''], { query }) {
      const all = project.operations.ofZone(zone).map((one) => project.resourceOfOperation(one));
      const matches = parseFilter(query.get('filter') ?? '');
      const sorted = query.get('orderBy') === 'creationTimestamp desc' ? all.toReversed() : all;
      return listed('compute#operationList', sorted.filter(matches), query);
    },
  },
  {
    method: 'GET',
    pattern: /^zones\/([^/]+)\/operations\/([^/]+)$/,
    parameters: [],
    run: (project, [zone = '', name = '']) => operationResource(project, zone, name),
  },
  {
    method: 'POST',
    pattern: /^zones\/([^/]+)\/operations\/([^/]+)\/wait$/,
    parameters: [],
    run: (project, [zone = '', name = '']) => operationResource(project, zone, name),
  },
  {
    method: 'GET',
    pattern: /^regions$/,
    parameters: LISTS,
    run: (project, _at, { query }) => listed('compute#regionList', project.regions(), query),
  },
  {
    method: 'GET',
    pattern: /^global\/firewalls\/([^/]+)$/,
    parameters: [],
    run: (project, [name = '']) => project.firewall(name),
  },
  {
    method: 'PATCH',
    pattern: /^global\/firewalls\/([^/]+)$/,
    parameters: ['requestId'],
    run: (project, [name = ''], { body }) =>
      project.resourceOfOperation(project.patchFirewall(name, body)),
  },
  {
    method: 'POST',
    pattern: /^global\/firewalls$/,
    parameters: ['requestId'],
    run: (project, _at, { body }) => project.resourceOfOperation(project.insertFirewall(body)),
  },
];

/** Parameters of every method. */
const COMMON = ['$alt', '$prettyPrint', 'alt', 'fields', 'key', 'quotaUser'];

export async function answer(project: FakeProject, call: Call): Promise<Json> {
  project.settle();
  for (const route of ROUTES) {
    const match = route.method === call.method ? route.pattern.exec(call.path) : null;
    if (match === null) continue;
    for (const name of call.query.keys()) {
      if ([...COMMON, ...route.parameters].includes(name)) continue;
      const message = `Invalid JSON payload received. Unknown name "${name}": Cannot bind query parameter.`;
      throw new ApiFailure(400, 'invalid', message);
    }
    return route.run(project, match.slice(1), call);
  }
  throw new ApiFailure(404, 'notFound', `no such method: ${call.method} ${call.path}`);
}

function operationResource(project: FakeProject, zone: string, name: string): Json {
  const operation = project.operations.find(zone, name);
  if (operation === undefined) throw notFound(project.pathOf(`zones/${zone}/operations/${name}`));
  return project.resourceOfOperation(operation);
}

function refuseUnreachable(project: FakeProject, zone: string): void {
  if (!project.unreachable.has(zone)) return;
  throw new ApiFailure(503, 'backendError', 'Internal error. Please try again or contact support.');
}

function listed(kind: string, all: Json[], query: URLSearchParams): Json {
  const { items, next } = pageOf(all, pagesOf(query));
  return { kind, items, ...(next === undefined ? {} : { nextPageToken: next }) };
}

const pagesOf = (query: URLSearchParams) => ({
  maxResults: query.get('maxResults') ?? undefined,
  pageToken: query.get('pageToken') ?? undefined,
});

/** Every scope is on every page, with a warning where the page has nothing of it. */
function aggregated(project: FakeProject, { query }: Call): Json {
  const { unreachable, options } = project;
  if (unreachable.size > 0 && query.get('returnPartialSuccess') !== 'true') {
    const [zone = ''] = unreachable;
    refuseUnreachable(project, zone);
  }
  const matches = parseFilter(query.get('filter') ?? '');
  const readable = options.zones.filter((zone) => !unreachable.has(zone));
  const all = readable.flatMap((zone) => project.visible(zone));
  const found = all.filter((instance) => matches(objectOf(project.resourceOf(instance))));
  const { items, next } = pageOf(found, pagesOf(query), project.pageSizeMax);
  const scopes = options.zones.map((zone): [string, Json] => {
    const scope = `zones/${zone}`;
    const here = items.filter((instance) => instance.zone === zone);
    if (here.length > 0) {
      return [scope, { instances: here.map((instance) => project.resourceOf(instance)) }];
    }
    const code = unreachable.has(zone) ? 'UNREACHABLE' : 'NO_RESULTS_ON_PAGE';
    const message = `There are no results for scope '${scope}' on this page.`;
    return [scope, { warning: { code, message, data: [{ key: 'scope', value: scope }] } }];
  });
  return {
    kind: 'compute#instanceAggregatedList',
    items: Object.fromEntries(scopes),
    ...(unreachable.size === 0
      ? {}
      : { unreachables: [...unreachable].map((zone) => `${project.base}/zones/${zone}`) }),
    ...(next === undefined ? {} : { nextPageToken: next }),
  };
}
