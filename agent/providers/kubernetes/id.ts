/** Ids of the kubernetes provider: `<namespace>/<name>` of the pod. */

const NAMESPACE_PATTERN = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const NAME_PATTERN = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

export interface PodRef {
  readonly namespace: string;
  readonly name: string;
}

export function formatId({ namespace, name }: PodRef): string {
  return `${namespace}/${name}`;
}

/** undefined for anything that `formatId` does not write. */
export function parseId(id: string): PodRef | undefined {
  const [namespace, name, ...rest] = id.split('/');
  if (namespace === undefined || name === undefined || rest.length > 0) return undefined;
  if (!NAMESPACE_PATTERN.test(namespace) || !NAME_PATTERN.test(name)) return undefined;
  return { namespace, name };
}
