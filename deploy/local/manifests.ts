/** Manifests of this repository, and how they get into a cluster. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Clock } from '#shared/clock.ts';
import { nameOf, namespaceOf, objectAt, stringAt } from './control-plane/api/object-meta.ts';
import { isJsonObject, type JsonObject, type JsonValue, objects } from './control-plane/json.ts';
import { StartFault } from './fault.ts';
import { type KubeClient, KubeError } from './kube/client.ts';

/** Owner of the fields that a start applies. */
const FIELD_MANAGER = 'local-stack';
const ESTABLISH_POLL_MS = 50;
const ESTABLISH_TRIES_MAX = 200;

/** Collections by kind: what this repository's manifests hold. */
const COLLECTIONS: Readonly<
  Record<string, { readonly path: string; readonly inNamespace: boolean }>
> = {
  Namespace: { path: '/api/v1/namespaces', inNamespace: false },
  ServiceAccount: { path: 'serviceaccounts', inNamespace: true },
  ClusterRole: { path: '/apis/rbac.authorization.k8s.io/v1/clusterroles', inNamespace: false },
  ClusterRoleBinding: {
    path: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
    inNamespace: false,
  },
  CustomResourceDefinition: {
    path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    inNamespace: false,
  },
};

/** All objects of the YAML files of a folder, by file name. */
function readManifests(folder: string): JsonObject[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.yaml'))
    .sort()
    .flatMap((name) => readManifest(join(folder, name)));
}

/** All objects of one YAML file. */
export function readManifest(file: string): JsonObject[] {
  return parseAllDocuments(readFileSync(file, 'utf8')).flatMap((document) => {
    if ('errors' in document && document.errors.length > 0) {
      throw new StartFault(`${file}: ${document.errors[0]?.message ?? 'is not YAML'}`);
    }
    const value: JsonValue = document.toJS();
    return isJsonObject(value) ? [value] : [];
  });
}

/** Defines the resources and gives the agent its rights; waits until the resources are served. */
export async function installManifests(
  { client, clock }: { client: KubeClient; clock: Clock },
  root: string,
  signal: AbortSignal,
): Promise<void> {
  const definitions = readManifests(join(root, 'deploy', 'crds'));
  const rules = readManifests(join(root, 'deploy', 'rbac'));
  const namespaces = rules.filter((object) => object['kind'] === 'Namespace');
  await applyManifests(client, [...definitions, ...namespaces, ...rules], signal);
  await whenEstablished({ client, clock }, definitions, signal);
}

/** Server-side applies objects, one after the other, in their order. */
async function applyManifests(
  client: KubeClient,
  objects: readonly JsonObject[],
  signal: AbortSignal,
): Promise<void> {
  for (const object of objects) {
    await client.request({
      method: 'PATCH',
      path: objectPath(object),
      query: { fieldManager: FIELD_MANAGER, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body: object,
      signal,
    });
  }
}

/** Waits until the resources that CRDs define are served. */
async function whenEstablished(
  { client, clock }: { client: KubeClient; clock: Clock },
  definitions: readonly JsonObject[],
  signal: AbortSignal,
): Promise<void> {
  for (const definition of definitions) {
    let tries = 0;
    while (!isEstablished(await client.request({ path: objectPath(definition), signal }))) {
      if (++tries > ESTABLISH_TRIES_MAX) {
        throw new StartFault(`${nameOf(definition)}: the CRD was not established`);
      }
      await clock.sleep(ESTABLISH_POLL_MS, signal);
    }
  }
}

/** Creates an object unless one of its name exists. */
export async function createIfAbsent(
  client: KubeClient,
  collection: string,
  object: JsonObject,
  signal: AbortSignal,
): Promise<void> {
  try {
    const query = { fieldManager: FIELD_MANAGER };
    await client.request({ method: 'POST', path: collection, query, body: object, signal });
  } catch (error) {
    if (!(error instanceof KubeError && error.reason === 'AlreadyExists')) throw error;
  }
}

function isEstablished(definition: JsonObject): boolean {
  return objects(objectAt(definition, 'status')['conditions']).some(
    (one) => one['type'] === 'Established' && one['status'] === 'True',
  );
}

function objectPath(object: JsonObject): string {
  const kind = stringAt(object, 'kind');
  const name = nameOf(object);
  const collection = COLLECTIONS[kind];
  if (collection === undefined) throw new StartFault(`manifests: unknown kind "${kind}"`);
  return collection.inNamespace
    ? `/api/v1/namespaces/${namespaceOf(object) || 'default'}/${collection.path}/${name}`
    : `${collection.path}/${name}`;
}
