/** Pods: most of the spec is fixed at creation, the node reports status and ends deletion. */
import { isDeepStrictEqual } from 'node:util';
import { objectAt, stringAt, withFields } from '../../api/object-meta.ts';
import { isJsonObject, type JsonObject, type JsonValue, objects } from '../../json.ts';
import type { FieldError } from '../../schema/field-error.ts';
import type { Strategy } from '../api-resource.ts';
import { plainStrategy } from './plain.ts';

const IMMUTABLE_SPEC =
  'pod updates may not change fields other than `spec.containers[*].image`,' +
  '`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,' +
  '`spec.tolerations` (only additions to existing tolerations),' +
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

export const podStrategy: Strategy = {
  ...plainStrategy,
  gracefulDeletion: true,
  selectableFields: {
    'spec.nodeName': (pod) => stringAt(objectAt(pod, 'spec'), 'nodeName'),
    'spec.restartPolicy': (pod) => stringAt(objectAt(pod, 'spec'), 'restartPolicy'),
    'spec.schedulerName': (pod) => stringAt(objectAt(pod, 'spec'), 'schedulerName'),
    'spec.serviceAccountName': (pod) => stringAt(objectAt(pod, 'spec'), 'serviceAccountName'),
    'status.phase': (pod) => stringAt(objectAt(pod, 'status'), 'phase'),
    'status.podIP': (pod) => stringAt(objectAt(pod, 'status'), 'podIP'),
  },
  prepareForCreate: (pod) => ({
    ...pod,
    spec: withSpecDefaults(objectAt(pod, 'spec')),
    status: { phase: 'Pending', qosClass: qosClass(objectAt(pod, 'spec')) },
  }),
  validate: (pod, old) => (old === undefined ? [] : validateSpecUpdate(pod, old)),
};

/** Whether a pod's processes have ended for good. */
export function hasEnded(pod: JsonObject): boolean {
  return ['Succeeded', 'Failed'].includes(stringAt(objectAt(pod, 'status'), 'phase'));
}

/** The defaults that depend on other fields; constant ones are in the schema. */
function withSpecDefaults(spec: JsonObject): JsonObject {
  const account =
    stringAt(spec, 'serviceAccountName') || stringAt(spec, 'serviceAccount') || 'default';
  return withFields(spec, {
    securityContext: objectAt(spec, 'securityContext'),
    serviceAccountName: account,
    serviceAccount: account,
    enableServiceLinks: spec.enableServiceLinks ?? true,
    containers: withContainerDefaults(spec.containers),
    initContainers: withContainerDefaults(spec.initContainers),
  });
}

function withContainerDefaults(containers: JsonValue | undefined): JsonValue | undefined {
  // What is no list of objects stays for the schema to refuse.
  if (!Array.isArray(containers)) return containers;
  return containers.map((container) =>
    isJsonObject(container)
      ? {
          ...container,
          imagePullPolicy: container.imagePullPolicy ?? pullPolicy(stringAt(container, 'image')),
          resources: container.resources ?? {},
        }
      : container,
  );
}

/** An image that may move is always asked for. */
function pullPolicy(image: string): string {
  if (image.includes('@')) return 'IfNotPresent';
  const tag = /:([^/:]+)$/.exec(image)?.[1] ?? 'latest';
  return tag === 'latest' ? 'Always' : 'IfNotPresent';
}

function validateSpecUpdate(pod: JsonObject, old: JsonObject): FieldError[] {
  const [before, after] = [old, pod].map((one) => fixedPart(objectAt(one, 'spec')));
  if (isDeepStrictEqual(before, after)) return [];
  return [{ type: 'FieldValueForbidden', field: 'spec', detail: IMMUTABLE_SPEC }];
}

/** The spec without what an update may change. */
function fixedPart(spec: JsonObject): JsonObject {
  return withFields(spec, {
    activeDeadlineSeconds: undefined,
    tolerations: undefined,
    containers: withoutImages(spec.containers),
    initContainers: withoutImages(spec.initContainers),
  });
}

function withoutImages(containers: JsonValue | undefined): JsonValue | undefined {
  if (containers === undefined) return undefined;
  return objects(containers).map((container) => withFields(container, { image: undefined }));
}

/** Guaranteed, Burstable or BestEffort, by the requests and limits for CPU and memory. */
export function qosClass(spec: JsonObject): string {
  const resources = objects(spec.containers).map((container) => {
    const stated = objectAt(container, 'resources');
    return { requests: objectAt(stated, 'requests'), limits: objectAt(stated, 'limits') };
  });
  const kinds = ['cpu', 'memory'];
  const none = resources.every(({ requests, limits }) =>
    kinds.every((kind) => requests[kind] === undefined && limits[kind] === undefined),
  );
  if (none) return 'BestEffort';
  const guaranteed = resources.every(({ requests, limits }) =>
    kinds.every((kind) => {
      const limit = limits[kind];
      return limit !== undefined && (requests[kind] ?? limit) === limit;
    }),
  );
  return guaranteed ? 'Guaranteed' : 'Burstable';
}
