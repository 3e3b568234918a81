import { describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject } from '#deploy/local/control-plane/json.ts';
import { builtinSchema } from '#deploy/local/control-plane/openapi/builtin/index.ts';
import { trackUpdate } from '#deploy/local/control-plane/patch/track-update.ts';

const podSchema = builtinSchema('', 'v1', 'Pod');
if (podSchema === undefined) throw new Error('pods are built in');
const scope = { schema: podSchema.root, subresource: '', statusSubresource: true };

const pod = (rest: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', ...metadata },
  ...rest,
});

function managed(object: JsonObject): JsonObject[] {
  const metadata = isJsonObject(object.metadata) ? object.metadata : {};
  return Array.isArray(metadata.managedFields) ? metadata.managedFields.filter(isJsonObject) : [];
}

/** The object with the managedFields of another one, as a client sends back what it read. */
function carry(object: JsonObject, from: JsonObject): JsonObject {
  return pod(object, { managedFields: managed(from) });
}

describe('tracking an update', () => {
  const created = trackUpdate({
    ...scope,
    after: pod(
      { spec: { containers: [{ name: 'c', image: '1' }] } },
      { labels: { a: 'b' }, uid: 'u' },
    ),
    manager: 'creator',
    time: '2026-01-01T00:00:00Z',
  });

  it('gives a new object to its creator, without the fields that the server owns', () => {
    expect(managed(created)).toEqual([
      {
        apiVersion: 'v1',
        fieldsType: 'FieldsV1',
        fieldsV1: {
          'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } },
          'f:spec': {
            '.': {},
            'f:containers': {
              '.': {},
              'k:{"name":"c"}': { '.': {}, 'f:image': {}, 'f:name': {} },
            },
          },
        },
        manager: 'creator',
        operation: 'Update',
        time: '2026-01-01T00:00:00Z',
      },
    ]);
  });

  it('moves a changed field to whoever changed it', () => {
    const after = trackUpdate({
      ...scope,
      before: created,
      after: pod(
        { spec: { containers: [{ name: 'c', image: '2' }] } },
        { labels: { a: 'b' }, uid: 'u' },
      ),
      manager: 'editor',
      time: '2026-01-02T00:00:00Z',
    });
    const [first, second] = managed(after);
    expect(JSON.stringify(first?.fieldsV1)).not.toContain('f:image');
    expect(second).toMatchObject({
      manager: 'editor',
      fieldsV1: { 'f:spec': { 'f:containers': { 'k:{"name":"c"}': { 'f:image': {} } } } },
    });
  });

  it('forgets the owners of removed fields', () => {
    const after = trackUpdate({
      ...scope,
      before: created,
      after: pod({}),
      manager: 'editor',
      time: '2026-01-02T00:00:00Z',
    });
    expect(managed(after)).toEqual([]);
    expect(after.metadata).toEqual({ name: 'p' });
  });

  it('changes nothing, not even the time, when nothing changed', () => {
    const after = trackUpdate({
      ...scope,
      before: created,
      after: { ...created },
      manager: 'creator',
      time: '2027-01-01T00:00:00Z',
    });
    expect(after).toEqual(created);
  });

  it('keeps the status apart from the rest', () => {
    const status = { phase: 'Running' };
    const after = trackUpdate({
      ...scope,
      before: created,
      after: { ...created, status },
      manager: 'node',
      subresource: 'status',
      time: '2026-01-02T00:00:00Z',
    });
    expect(managed(after)[1]).toEqual({
      apiVersion: 'v1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:status': { '.': {}, 'f:phase': {} } },
      manager: 'node',
      operation: 'Update',
      subresource: 'status',
      time: '2026-01-02T00:00:00Z',
    });
  });

  it('takes managedFields that the client edited, and clears them on request', () => {
    const edited = { ...created, metadata: { name: 'p', managedFields: [{}] } };
    const after = trackUpdate({
      ...scope,
      before: created,
      after: { ...created, ...edited, metadata: { ...edited.metadata, labels: { a: 'b' } } },
      manager: 'editor',
      time: '2026-01-02T00:00:00Z',
    });
    expect(managed(after)).toEqual([]);
  });

  it('merges the oldest updaters when there are more than ten', () => {
    let object = pod({});
    for (let index = 0; index < 12; index++) {
      const labels = Object.fromEntries(
        Array.from({ length: index + 1 }, (_, n) => [`l${n}`, 'x']),
      );
      const { metadata } = carry({}, object);
      object = trackUpdate({
        ...scope,
        before: object,
        after: pod({}, { ...(isJsonObject(metadata) ? metadata : {}), labels }),
        manager: `m${index}`,
        time: `2026-01-01T00:00:${String(index).padStart(2, '0')}Z`,
      });
    }
    const managers = managed(object).map((entry) => entry.manager);
    expect(managers).toHaveLength(10);
    expect(managers[0]).toBe('ancient-changes');
    expect(JSON.stringify(managed(object)[0])).toContain('f:l0');
    expect(managers.at(-1)).toBe('m11');
  });
});
