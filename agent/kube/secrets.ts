/**
 * Secrets, in the two ways that the agent reads them. Those with cloud-init user-data carry a
 * label and come from an informer, so that a rotation is an event. Credentials of external proxies
 * carry none: caching every Secret of a cluster to see them would be worse than asking for each by
 * name once a minute.
 */

import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import { CLOUD_INIT_LABEL } from '#shared/crd/names.ts';
import { objectKey, objectMetaSchema } from '#shared/crd/object-meta.ts';
import type { KubeClient } from './client.ts';
import { isKubeError } from './errors.ts';
import { createInformer, type Informer, type InformerDeps } from './informer.ts';
import { createResource, SECRETS } from './resource.ts';

/** A Secret with its values decoded. Never logged. */
export interface Secret {
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
  /** Text of each key; bytes that are not UTF-8 become replacement characters. */
  readonly data: Readonly<Record<string, string>>;
}

const secretSchema = z.object({
  metadata: objectMetaSchema.pick({
    namespace: true,
    name: true,
    uid: true,
    resourceVersion: true,
  }),
  data: z.record(z.string(), z.string()).nullish(),
});

export function parseSecret(object: unknown): Secret {
  const { metadata, data } = secretSchema.parse(object);
  const decoded = Object.entries(data ?? {}).map(([key, value]) => [
    key,
    Buffer.from(value, 'base64').toString('utf8'),
  ]);
  return { metadata, data: Object.fromEntries(decoded) };
}

/** Informer of the Secrets that may hold cloud-init user-data, in one or every namespace. */
export function createCloudInitSecrets(
  deps: Pick<InformerDeps<Secret>, 'client' | 'clock' | 'random' | 'observer'> & {
    readonly namespace?: string;
  },
): Informer<Secret> {
  const { namespace, ...rest } = deps;
  return createInformer({
    ...rest,
    type: SECRETS,
    options: {
      labelSelector: `${CLOUD_INIT_LABEL}=true`,
      ...(namespace === undefined ? {} : { namespace }),
    },
    parse: parseSecret,
  });
}

/** Secrets by name, read on demand and again when what is known is old. */
export interface SecretStore {
  /** The Secret, at most a minute old; undefined when there is none. Throws `KubeError`. */
  get(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
  /** What the last `get` found, however old. */
  peek(namespace: string, name: string): Secret | undefined;
  /** `listener` is called when a `get` found another content than the one before it. */
  subscribe(listener: (namespace: string, name: string) => void): () => void;
}

const SECRET_AGE_MS_MAX = 60_000;
/** Shorter: a Secret that was forgotten is usually created a moment after the Proxy. */
const ABSENCE_AGE_MS_MAX = 5_000;
/** Far above the proxies of one agent; the least recently read are dropped beyond it. */
const SECRETS_MAX = 20_000;

interface Known {
  readonly secret: Secret | undefined;
  readonly readAtMs: number;
}

export function createSecretStore(deps: {
  readonly client: KubeClient;
  readonly clock: Clock;
}): SecretStore {
  const { clock } = deps;
  const secrets = createResource(deps.client, SECRETS, parseSecret);
  const known = new Map<string, Known>();
  const listeners = new Set<(namespace: string, name: string) => void>();

  function remember(namespace: string, name: string, secret: Secret | undefined): void {
    const key = objectKey({ namespace, name });
    const before = known.get(key);
    known.delete(key);
    known.set(key, { secret, readAtMs: clock.monotonicMs() });
    if (known.size > SECRETS_MAX) {
      const [oldest] = known.keys();
      if (oldest !== undefined) known.delete(oldest);
    }
    if (before !== undefined && sameContent(before.secret, secret)) return;
    for (const listener of listeners) listener(namespace, name);
  }

  return {
    async get(namespace, name, signal) {
      const cached = known.get(objectKey({ namespace, name }));
      if (cached !== undefined && isFresh(cached, clock.monotonicMs())) return cached.secret;
      const secret = await secrets.get({ namespace, name }, signal).catch((error: unknown) => {
        if (isKubeError(error, 'NotFound')) return undefined;
        throw error;
      });
      remember(namespace, name, secret);
      return secret;
    },
    peek: (namespace, name) => known.get(objectKey({ namespace, name }))?.secret,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function isFresh(known: Known, nowMs: number): boolean {
  const maxMs = known.secret === undefined ? ABSENCE_AGE_MS_MAX : SECRET_AGE_MS_MAX;
  return nowMs - known.readAtMs < maxMs;
}

function sameContent(a: Secret | undefined, b: Secret | undefined): boolean {
  return (
    a?.metadata.uid === b?.metadata.uid &&
    a?.metadata.resourceVersion === b?.metadata.resourceVersion
  );
}
