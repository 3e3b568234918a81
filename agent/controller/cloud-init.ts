/** User-data of managed machines: inline or from a labelled Secret of the Proxy's namespace. */
import { CLOUD_INIT_LABEL } from '#shared/crd/names.ts';
import { objectKey } from '#shared/crd/object-meta.ts';
import type { Proxy } from '#shared/crd/proxy.ts';

/** The labelled Secrets, by `namespace/name`; those without the label are not there. */
export interface CloudInitSecrets {
  get(key: string): { readonly data: Readonly<Record<string, string>> } | undefined;
}

export type CloudInitResult =
  | { readonly ok: true; readonly userData: string | undefined }
  | { readonly ok: false; readonly problem: string };

/** The user-data of `proxy`, or what is wrong with the Secret; the content is in no message. */
export function resolveCloudInit(proxy: Proxy, secrets: CloudInitSecrets): CloudInitResult {
  const { cloudInit } = proxy.spec;
  if (cloudInit === undefined) return { ok: true, userData: undefined };
  const ref = cloudInit.secretRef;
  if (ref === undefined) return { ok: true, userData: cloudInit.inline };
  const secretKey = objectKey({ namespace: proxy.metadata.namespace, name: ref.name });
  const secret = secrets.get(secretKey);
  if (secret === undefined) {
    const label = `${CLOUD_INIT_LABEL}: "true"`;
    const problem = `Secret ${secretKey} does not exist or lacks the label ${label}`;
    return { ok: false, problem };
  }
  const userData = Object.hasOwn(secret.data, ref.key) ? secret.data[ref.key] : undefined;
  if (userData === undefined) {
    return { ok: false, problem: `Secret ${secretKey} has no key "${ref.key}"` };
  }
  return { ok: true, userData };
}

/** Keys of the Proxies that take their user-data from the Secret: a rotation concerns them. */
export function proxiesOfSecret(secretKey: string, proxies: Iterable<Proxy>): string[] {
  const keys: string[] = [];
  for (const proxy of proxies) {
    const ref = proxy.spec.cloudInit?.secretRef;
    if (ref === undefined) continue;
    const { namespace } = proxy.metadata;
    if (objectKey({ namespace, name: ref.name }) === secretKey)
      keys.push(objectKey(proxy.metadata));
  }
  return keys;
}
