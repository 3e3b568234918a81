/**
 * Events: `v1` and `events.k8s.io/v1` are two spellings of the same objects, stored as `v1`; so
 * `kubectl describe`, which reads the former, shows what the agent writes as the latter.
 */
import { namespaceOf, objectAt, stringAt } from '../../api/object-meta.ts';
import type { JsonObject } from '../../json.ts';
import type { FieldError } from '../../schema/field-error.ts';
import type { Strategy } from '../api-resource.ts';
import { plainStrategy } from './plain.ts';

const NOTE_BYTES_MAX = 1024;
const REASON_LENGTH_MAX = 128;

/** `events.k8s.io/v1` field → field of the core kind; the others have one name. */
const CORE_FIELDS = {
  regarding: 'involvedObject',
  note: 'message',
  reportingController: 'reportingComponent',
  deprecatedSource: 'source',
  deprecatedFirstTimestamp: 'firstTimestamp',
  deprecatedLastTimestamp: 'lastTimestamp',
  deprecatedCount: 'count',
} as const;

const involved = (field: string) => (event: JsonObject) =>
  stringAt(objectAt(event, 'involvedObject'), field);

const INVOLVED_FIELDS = [
  'kind',
  'namespace',
  'name',
  'uid',
  'apiVersion',
  'resourceVersion',
  'fieldPath',
];

const coreFields = {
  ...Object.fromEntries(INVOLVED_FIELDS.map((name) => [`involvedObject.${name}`, involved(name)])),
  reason: (event: JsonObject) => stringAt(event, 'reason'),
  reportingComponent: (event: JsonObject) => stringAt(event, 'reportingComponent'),
  source: (event: JsonObject) =>
    stringAt(objectAt(event, 'source'), 'component') || stringAt(event, 'reportingComponent'),
  type: (event: JsonObject) => stringAt(event, 'type'),
};

/** Events as core `v1` shows them. */
export const coreEventStrategy: Strategy = {
  ...plainStrategy,
  createOnUpdate: true,
  selectableFields: coreFields,
  toStorage: withCoreDefaults,
  validate: validateInvolved,
};

/** Events as `events.k8s.io/v1` shows them; selectors see the stored form. */
export const eventStrategy: Strategy = {
  ...plainStrategy,
  createOnUpdate: true,
  selectableFields: {
    ...coreFields,
    ...Object.fromEntries(INVOLVED_FIELDS.map((name) => [`regarding.${name}`, involved(name)])),
    reportingController: (event) => stringAt(event, 'reportingComponent'),
  },
  toStorage: (event) =>
    withCoreDefaults({ ...renamed(event, Object.entries(CORE_FIELDS)), apiVersion: 'v1' }),
  fromStorage: (event) => ({
    ...renamed(
      event,
      Object.entries(CORE_FIELDS).map(([one, other]) => [other, one]),
    ),
    apiVersion: 'events.k8s.io/v1',
  }),
  validate: (event, old) => [
    ...validateInvolved(event),
    ...(old === undefined ? validateNewEvent(event) : []),
  ],
};

function renamed(event: JsonObject, names: readonly (readonly [string, string])[]): JsonObject {
  const result: JsonObject = { ...event };
  for (const [from, to] of names) {
    const value = event[from];
    delete result[from];
    if (value !== undefined) result[to] = value;
  }
  return result;
}

/** Fields that the server always shows, empty as they may be. */
function withCoreDefaults(event: JsonObject): JsonObject {
  return {
    ...event,
    source: objectAt(event, 'source'),
    firstTimestamp: event.firstTimestamp ?? null,
    lastTimestamp: event.lastTimestamp ?? null,
    eventTime: event.eventTime ?? null,
    reportingComponent: stringAt(event, 'reportingComponent'),
    reportingInstance: stringAt(event, 'reportingInstance'),
  };
}

/** Events about cluster-scoped objects live in `default`, others beside their object. */
function validateInvolved(event: JsonObject): FieldError[] {
  const namespace = stringAt(objectAt(event, 'involvedObject'), 'namespace');
  const expected = namespace === '' ? ['default', 'kube-system'] : [namespace];
  if (expected.includes(namespaceOf(event))) return [];
  const detail = 'does not match event.namespace';
  return [
    { type: 'FieldValueInvalid', field: 'involvedObject.namespace', badValue: namespace, detail },
  ];
}

function validateNewEvent(event: JsonObject): FieldError[] {
  const required = ['eventTime', 'reportingComponent', 'reportingInstance', 'action', 'reason'];
  const errors: FieldError[] = required
    .filter((field) => (event[field] ?? '') === '')
    .map((field) => ({
      type: 'FieldValueRequired',
      field: field === 'reportingComponent' ? 'reportingController' : field,
      detail: '',
    }));
  const type = stringAt(event, 'type');
  if (type !== 'Normal' && type !== 'Warning') {
    errors.push({ type: 'FieldValueInvalid', field: 'type', badValue: type, detail: '' });
  }
  for (const field of ['reason', 'action']) {
    if (stringAt(event, field).length > REASON_LENGTH_MAX) {
      const detail = `can have at most ${REASON_LENGTH_MAX} characters`;
      errors.push({ type: 'FieldValueInvalid', field, badValue: '', detail });
    }
  }
  if (new TextEncoder().encode(stringAt(event, 'message')).length > NOTE_BYTES_MAX) {
    const detail = `can have at most ${NOTE_BYTES_MAX} bytes`;
    errors.push({ type: 'FieldValueInvalid', field: 'note', badValue: '', detail });
  }
  return errors;
}

/** When the event was last seen, for its expiry; undefined when it does not say. */
export function eventTimeMs(event: JsonObject): number | undefined {
  const series = objectAt(event, 'series');
  const times = [
    stringAt(series, 'lastObservedTime'),
    stringAt(event, 'lastTimestamp'),
    stringAt(event, 'eventTime'),
    stringAt(objectAt(event, 'metadata'), 'creationTimestamp'),
  ];
  const known = times.map(Date.parse).filter((time) => !Number.isNaN(time));
  return known.length === 0 ? undefined : Math.max(...known);
}
