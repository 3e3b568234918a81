/**
 * A KubeClient over a map of objects: enough of the API server's rules for unit tests (names are
 * unique, uids are new, deletion takes as long as a test likes, preconditions hold). What the real
 * server does besides is tested against the embedded control plane.
 */
import type { KubeClient, KubeRequest } from '#agent/kube/client.ts';
import { errorFromResponse } from '#agent/kube/errors.ts';

interface StoredMetadata {
  name: string;
  namespace: string;
  uid: string;
  resourceVersion: string;
  creationTimestamp: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  ownerReferences?: { uid: string }[];
}

export interface StoredObject {
  kind: string;
  metadata: StoredMetadata;
  [field: string]: unknown;
}

export class FakeKubeObjects implements KubeClient {
  readonly server = 'https://fake';
  /** By `plural/namespace/name`. */
  readonly objects = new Map<string, StoredObject>();
  /** `POST pods`, in order. */
  readonly requests: string[] = [];
  /** Pods stay, marked as being deleted, until a test removes them. */
  slowDeletion = false;
  /** Called before each request; a throw is its answer. */
  before: (request: KubeRequest) => void = () => {};
  #counter = 0;

  async request(request: KubeRequest, signal?: AbortSignal): Promise<unknown> {
    signal?.throwIfAborted();
    const method = request.method ?? 'GET';
    const { plural, namespace, name } = parsePath(request.path);
    this.requests.push(`${method} ${plural}`);
    this.before(request);
    if (request.path === '/version') return { gitVersion: 'v1.99.0' };
    const key = `${plural}/${namespace}/${name}`;
    if (method === 'POST') return this.#create(request, plural, namespace);
    if (name === '') return this.#list(request, plural, namespace);
    const object = this.objects.get(key);
    if (object === undefined)
      throw refusal(request, 404, 'NotFound', `${plural} "${name}" not found`);
    if (method === 'GET') return structuredClone(object);
    return this.#delete(request, key, object);
  }

  stream(): never {
    throw new Error('not used');
  }

  async close(): Promise<void> {}

  pod(name: string, namespace = 'crawl'): StoredObject {
    const pod = this.objects.get(`pods/${namespace}/${name}`);
    if (pod === undefined) throw new Error(`no pod ${name}`);
    return pod;
  }

  #create(request: KubeRequest, plural: string, namespace: string): StoredObject {
    const body = structuredClone(request.body) as StoredObject;
    const key = `${plural}/${namespace}/${body.metadata.name}`;
    if (this.objects.has(key)) {
      const message = `${plural} "${body.metadata.name}" already exists`;
      throw refusal(request, 409, 'AlreadyExists', message);
    }
    const count = ++this.#counter;
    Object.assign(body.metadata, {
      namespace,
      uid: `object-${count}`,
      resourceVersion: String(count),
      creationTimestamp: '2026-01-01T00:00:00Z',
    });
    this.objects.set(key, body);
    return structuredClone(body);
  }

  #list(request: KubeRequest, plural: string, namespace: string): object {
    const [label = '', value = ''] = String(request.query?.labelSelector ?? '').split('=');
    const items = [...this.objects.entries()]
      .filter(([key]) => key.startsWith(`${plural}/${namespace}`))
      .map(([, object]) => structuredClone(object))
      .filter((object) => label === '' || object.metadata.labels?.[label] === value);
    return { kind: 'List', metadata: { resourceVersion: '9' }, items };
  }

  #delete(request: KubeRequest, key: string, object: StoredObject): object {
    const { preconditions } = request.body as { preconditions?: { uid?: string } };
    if (preconditions?.uid !== undefined && preconditions.uid !== object.metadata.uid) {
      throw refusal(request, 409, 'Conflict', 'the UID in the precondition does not match');
    }
    if (this.slowDeletion && key.startsWith('pods/')) {
      object.metadata.deletionTimestamp = '2026-01-01T00:01:00Z';
    } else this.objects.delete(key);
    return { kind: 'Status', status: 'Success' };
  }
}

/** A refusal as the API server words it. */
export function refusal(request: KubeRequest, code: number, reason: string, message: string) {
  const at = `${request.method ?? 'GET'} ${request.path}`;
  return errorFromResponse(at, code, JSON.stringify({ kind: 'Status', code, reason, message }));
}

function parsePath(path: string): { plural: string; namespace: string; name: string } {
  const match = /^\/api\/v1(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?$/.exec(path);
  return { namespace: match?.[1] ?? '', plural: match?.[2] ?? '', name: match?.[3] ?? '' };
}
