/**
 * What Compute Engine takes of the mark as labels, in lower case only, and the Proxy's namespace and
 * name in the description, which takes any text. Pure.
 */
import { MANAGED_LABEL } from '#shared/crd/names.ts';
import { type Labels, MARK_LABELS } from '../mark.ts';
import type { Instance, Mark } from '../provider.ts';

const VALUE_PATTERN = /^[a-z0-9_-]{1,63}$/;
const DESCRIPTION_PATTERN = /^egress proxy ([^\s/]+)\/([^\s/]+)$/;

/** Selects what carries the mark, in the API's filter language. */
export const MARK_FILTER = `labels.${MANAGED_LABEL}=true`;

/** What is wrong with a mark as labels; undefined when nothing is. */
export function markProblem({ uid, installation }: Mark): string | undefined {
  for (const [what, value] of Object.entries({ uid, installation })) {
    if (VALUE_PATTERN.test(value)) continue;
    return `the ${what} "${value}" cannot be a label: 1 to 63 of a-z, 0-9, "-" and "_"`;
  }
  return undefined;
}

/** All labels but those of the mark. */
export function withoutMark(labels: Labels): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !MARK_LABELS.includes(key)));
}

export function descriptionOf(namespace: string, proxyName: string): string {
  return `egress proxy ${namespace}/${proxyName}`;
}

/** The Proxy that a description names. */
export function proxyOf(description: string): Instance['proxy'] {
  const [, namespace, name] = DESCRIPTION_PATTERN.exec(description) ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}
