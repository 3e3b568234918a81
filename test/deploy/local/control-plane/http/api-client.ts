/** A control plane in memory and the bare HTTPS requests that the tests make to it. */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { parseAllDocuments } from 'yaml';
import {
  type ControlPlane,
  type ControlPlaneOptions,
  createControlPlane,
} from '#deploy/local/control-plane/control-plane.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '#deploy/local/control-plane/json.ts';
import { FakeClock } from '#test/fakes/clock.ts';

export interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';
  /** Null: none at all. */
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: JsonValue | Uint8Array;
}

export interface CallResult {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The body as JSON; an empty object when it is none. */
  readonly json: JsonObject;
}

export interface TestServer extends AsyncDisposable {
  readonly controlPlane: ControlPlane;
  readonly clock: FakeClock;
  /** As administrator, unless another token is given. */
  call(path: string, options?: CallOptions): Promise<CallResult>;
  /** The lines of an open watch. */
  watch(path: string, headers?: Readonly<Record<string, string>>): Promise<WatchLines>;
}

export interface WatchLines {
  next(): Promise<JsonObject | undefined>;
}

export async function startTestServer(
  options: Partial<ControlPlaneOptions> = {},
): Promise<TestServer> {
  const clock = new FakeClock();
  const controlPlane = await createControlPlane({ port: 0, clock, ...options });
  const dispatcher = new Agent({ connect: { ca: controlPlane.caPem } });
  const call = async (path: string, { token, ...asked }: CallOptions = {}) => {
    const { body } = asked;
    const response = await request(`${controlPlane.url}${path}`, {
      dispatcher,
      method: asked.method ?? 'GET',
      headers: {
        ...(token !== null && { authorization: `Bearer ${token ?? controlPlane.adminToken}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...asked.headers,
      },
      ...(body !== undefined && { body: encode(body) }),
    });
    const text = await response.body.text();
    return { status: response.statusCode, headers: response.headers, text, json: parse(text) };
  };
  return {
    controlPlane,
    clock,
    call,
    watch: async (path, headers = {}) => {
      const response = await request(`${controlPlane.url}${path}`, {
        dispatcher,
        headers: { authorization: `Bearer ${controlPlane.adminToken}`, ...headers },
      });
      return linesOf(response.body);
    },
    [Symbol.asyncDispose]: async () => {
      await controlPlane.close();
      await dispatcher.destroy();
    },
  };
}

function encode(body: JsonValue | Uint8Array): string | Uint8Array {
  if (body instanceof Uint8Array) return body;
  return typeof body === 'string' ? body : JSON.stringify(body);
}

function parse(text: string): JsonObject {
  try {
    const value: JsonValue = JSON.parse(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

function linesOf(body: AsyncIterable<Buffer>): WatchLines {
  const chunks = body[Symbol.asyncIterator]();
  let pending = '';
  return {
    next: async () => {
      while (!pending.includes('\n')) {
        const { done, value } = await chunks.next();
        if (done === true) return undefined;
        pending += value.toString('utf8');
      }
      const end = pending.indexOf('\n');
      const line = pending.slice(0, end);
      pending = pending.slice(end + 1);
      return parse(line);
    },
  };
}

/** The objects in the files of the repository, such as `deploy/crds/proxies.yaml`. */
export function manifestsIn(...paths: string[]): JsonObject[] {
  return paths.flatMap((path) => {
    const text = readFileSync(new URL(`../../../../../${path}`, import.meta.url), 'utf8');
    return parseAllDocuments(text).map((document) => parse(JSON.stringify(document.toJS())));
  });
}

export const PROXY: JsonObject = {
  apiVersion: 'crawl.example.com/v1alpha1',
  kind: 'Proxy',
  metadata: { name: 'a' },
  spec: { mode: 'External', endpoint: { host: '127.0.0.1', port: 3128 } },
};

export const PROXIES = '/apis/crawl.example.com/v1alpha1/namespaces/default/proxies';

/** Defines proxies and gives the agent its role. */
export async function installManifests({ call }: TestServer): Promise<void> {
  const post = (path: string, body: JsonObject) => call(path, { method: 'POST', body });
  for (const crd of manifestsIn('deploy/crds/proxies.yaml', 'deploy/crds/providerhealths.yaml')) {
    await post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd);
  }
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  for (const object of manifestsIn('deploy/rbac/cluster-role.yaml')) {
    if (object.kind === 'ClusterRole') await post(`${rbac}/clusterroles`, object);
  }
  for (const object of manifestsIn('deploy/rbac/cluster-role-binding.yaml')) {
    if (object.kind === 'ClusterRoleBinding') await post(`${rbac}/clusterrolebindings`, object);
  }
}
