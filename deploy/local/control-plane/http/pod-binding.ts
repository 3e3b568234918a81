/** The `binding` subresource of pods: how a scheduler gives a pod its node, once. */
import { objectAt, stringAt, uidOf, withFields } from '../api/object-meta.ts';
import { badRequest, conflict, preconditionFailed } from '../api/status-error.ts';
import type { Verbs, WriteOptions } from '../api/verbs/verbs.ts';
import type { JsonObject } from '../json.ts';
import type { ApiResource } from '../registry/api-resource.ts';
import type { ResourceRequest } from './request-info.ts';

/** Sets `spec.nodeName`; a pod that has a node, or is another one than was meant, is a conflict. */
export function bindPod(
  verbs: Verbs,
  resource: ApiResource,
  { namespace, name }: Pick<ResourceRequest, 'namespace' | 'name'>,
  binding: JsonObject,
  options: WriteOptions,
): void {
  const nodeName = stringAt(objectAt(binding, 'target'), 'name');
  if (nodeName === '') throw badRequest('target.name: Required value');
  const pod = verbs.get(resource, namespace, name);
  const uid = uidOf(binding);
  if (uid !== '' && uid !== uidOf(pod)) {
    throw preconditionFailed(resource, name, 'UID', uid, uidOf(pod));
  }
  const spec = objectAt(pod, 'spec');
  const assigned = stringAt(spec, 'nodeName');
  if (assigned !== '') {
    throw conflict(resource, name, `pod ${name} is already assigned to node "${assigned}"`);
  }
  if (objectAt(pod, 'metadata')['deletionTimestamp'] !== undefined) {
    throw conflict(resource, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  }
  const bound = withFields(pod, { spec: withFields(spec, { nodeName }) });
  verbs.update(resource, namespace, name, bound, { ...options, subresource: 'binding' });
}
