/** Namespaces: active from the start, emptied before they go. */
import { metaMap, nameOf, objectAt, stringAt, withMetadata } from '../../api/object-meta.ts';
import { type JsonObject, strings } from '../../json.ts';
import type { Strategy } from '../api-resource.ts';
import { plainStrategy } from './plain.ts';

/** Clusters cannot do without these: the real server refuses to delete them too. */
const IMMORTAL: ReadonlySet<string> = new Set(['default', 'kube-public', 'kube-system']);
const NAME_LABEL = 'kubernetes.io/metadata.name';

export const namespaceStrategy: Strategy = {
  ...plainStrategy,
  nameRule: 'label',
  selectableFields: { 'status.phase': namespacePhase },
  prepareForCreate: (namespace) => ({
    ...withNameLabel(namespace),
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  }),
  prepareForUpdate: (namespace, old) => ({
    ...withNameLabel(namespace),
    spec: objectAt(old, 'spec'),
  }),
  refuseDelete: (namespace) =>
    IMMORTAL.has(nameOf(namespace)) ? 'this namespace may not be deleted' : undefined,
  prepareForDelete: (namespace) => ({
    ...namespace,
    status: { ...objectAt(namespace, 'status'), phase: 'Terminating' },
  }),
  isHeld: (namespace) => strings(objectAt(namespace, 'spec').finalizers).length > 0,
};

/** `Active`, or `Terminating` while its content is being deleted. */
export function namespacePhase(namespace: JsonObject): string {
  return stringAt(objectAt(namespace, 'status'), 'phase');
}

function withNameLabel(namespace: JsonObject): JsonObject {
  const labels = { ...metaMap(namespace, 'labels'), [NAME_LABEL]: nameOf(namespace) };
  return withMetadata(namespace, { labels });
}
