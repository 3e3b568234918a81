/** ConfigMaps, Secrets and empty directories as folders that a container's process can read. */
import { chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { isJsonObject, type JsonObject } from '../control-plane/json.ts';
import { type KubeClient, KubeError } from '../kube/client.ts';
import type { Pod, Volume } from './pod.ts';

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** A volume that cannot be mounted now; the message is a kubelet's. */
export class MountError extends Error {
  override readonly name = 'MountError';
}

/** ConfigMaps and Secrets of one namespace, each read once per use. */
export interface ObjectSource {
  /** Data by key; undefined when the object does not exist. */
  configMap(name: string): Promise<ReadonlyMap<string, Buffer> | undefined>;
  secret(name: string): Promise<ReadonlyMap<string, Buffer> | undefined>;
}

/** Reads them from the API server. */
export function objectSource(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): ObjectSource {
  const read = async (plural: string, name: string): Promise<JsonObject | undefined> => {
    try {
      const path = `/api/v1/namespaces/${namespace}/${plural}/${name}`;
      return await client.request({ path, signal });
    } catch (error) {
      if (error instanceof KubeError && error.status === 404) return undefined;
      throw error;
    }
  };
  return {
    async configMap(name) {
      const object = await read('configmaps', name);
      if (object === undefined) return undefined;
      return new Map([
        ...entries(object['data'], 'utf8'),
        ...entries(object['binaryData'], 'base64'),
      ]);
    },
    async secret(name) {
      const object = await read('secrets', name);
      return object === undefined ? undefined : new Map(entries(object['data'], 'base64'));
    },
  };
}

function entries(data: JsonObject[string] | undefined, encoding: BufferEncoding) {
  if (!isJsonObject(data)) return [];
  return Object.entries(data).flatMap(([key, value]): [string, Buffer][] =>
    typeof value === 'string' ? [[key, Buffer.from(value, encoding)]] : [],
  );
}

/**
 * Makes every volume of the pod below `folder`, readable for `owner` alone; returns the folder of
 * each by name.
 */
export async function makeVolumes(
  pod: Pod,
  folder: string,
  source: ObjectSource,
  owner: Owner | undefined,
): Promise<ReadonlyMap<string, string>> {
  const folders = new Map<string, string>();
  for (const volume of pod.spec.volumes) {
    const path = join(folder, volume.name);
    makeFolder(path, owner);
    folders.set(volume.name, path);
    for (const [file, content] of await files(volume, source)) {
      const target = join(path, file);
      makeFolder(dirname(target), owner);
      // Of an attempt that failed further on; nobody but root may write into it.
      rmSync(target, { force: true });
      writeFileSync(target, content, { mode: 0o440 });
      if (owner !== undefined) chownSync(target, owner.uid, owner.gid);
    }
  }
  return folders;
}

function makeFolder(path: string, owner: Owner | undefined): void {
  mkdirSync(path, { recursive: true, mode: 0o750 });
  if (owner !== undefined) chownSync(path, owner.uid, owner.gid);
}

async function files(volume: Volume, source: ObjectSource): Promise<[string, Buffer][]> {
  if (volume.configMap !== undefined) {
    const { name, items, optional } = volume.configMap;
    return project(`configmap "${name}"`, await source.configMap(name), items, optional);
  }
  if (volume.secret !== undefined) {
    const { secretName, items, optional } = volume.secret;
    return project(`secret "${secretName}"`, await source.secret(secretName), items, optional);
  }
  return [];
}

function project(
  what: string,
  data: ReadonlyMap<string, Buffer> | undefined,
  items: readonly { key: string; path: string }[] | undefined,
  optional: boolean,
): [string, Buffer][] {
  if (data === undefined) {
    if (optional) return [];
    throw new MountError(`${what} not found`);
  }
  const wanted = items ?? [...data.keys()].map((key) => ({ key, path: key }));
  return wanted.flatMap(({ key, path }): [string, Buffer][] => {
    const content = data.get(key);
    if (leaves(path)) throw new MountError(`${what}: path "${path}" leaves the volume`);
    if (content !== undefined) return [[path, content]];
    if (optional) return [];
    throw new MountError(`${what} references non-existent key: ${key}`);
  });
}

/** Whether a path within a folder leads out of it. */
export function leaves(path: string): boolean {
  return path.startsWith('/') || normalize(path).split('/')[0] === '..';
}
