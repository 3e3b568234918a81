import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { JsonObject } from '#deploy/local/control-plane/json.ts';
import { renderFieldError } from '#deploy/local/control-plane/schema/field-error.ts';
import { compileResourceSchema } from '#deploy/local/control-plane/schema/resource-schema.ts';
import { proxySpecSchema, proxyStatusSchema } from '#shared/crd/proxy.ts';

function jsonSchema(schema: z.ZodType): JsonObject {
  const text = JSON.stringify(z.toJSONSchema(schema, { io: 'input', target: 'openapi-3.0' }));
  return JSON.parse(text);
}

const schema = compileResourceSchema({
  type: 'object',
  required: ['spec'],
  properties: { spec: jsonSchema(proxySpecSchema), status: jsonSchema(proxyStatusSchema) },
});

const proxy = (spec: JsonObject): JsonObject =>
  schema.applyDefaults(schema.prune({ metadata: { name: 'a' }, spec }));

function errors(spec: JsonObject, old?: JsonObject): string[] {
  return schema
    .validate(proxy(spec), old === undefined ? undefined : proxy(old))
    .map(renderFieldError);
}

const external = { mode: 'External', endpoint: { host: 'h', port: 1 } };

describe('the schema of Proxy', () => {
  it('has only rules that compile', () => {
    expect(schema.problems).toEqual([]);
  });

  it('fills in the defaults of the contract', () => {
    expect(proxy({ provider: 'p' }).spec).toEqual({
      mode: 'Managed',
      provider: 'p',
      port: 3128,
      maxLeases: 10,
      healthCheck: {
        expectedStatus: 200,
        intervalSeconds: 10,
        timeoutSeconds: 5,
        successThreshold: 1,
        failureThreshold: 3,
      },
      paused: false,
      leasable: true,
      deletionPolicy: 'Delete',
      drainSeconds: 0,
    });
  });

  it.each<[string, JsonObject, string[]]>([
    ['a managed proxy', { provider: 'p' }, []],
    ['an external proxy', external, []],
    [
      'attributes as labels',
      { provider: 'p', attributes: { 'example.com/tier': 'gold', x: '' } },
      [],
    ],
    [
      'no provider',
      {},
      ['spec.provider: Required value: provider is required when mode is Managed'],
    ],
    [
      'a provider beside an endpoint',
      { ...external, provider: 'p' },
      ['spec.provider: Forbidden: provider must not be set when mode is External'],
    ],
    [
      'no endpoint',
      { mode: 'External' },
      ['spec.endpoint: Required value: endpoint is required when mode is External'],
    ],
    [
      'an endpoint of a managed proxy',
      { provider: 'p', endpoint: external.endpoint },
      ['spec.endpoint: Forbidden: endpoint must not be set when mode is Managed'],
    ],
    [
      'placement of an external proxy',
      { ...external, placement: { zone: 'z' }, cloudInit: { inline: 'x' } },
      [
        'spec.placement: Forbidden: placement must not be set when mode is External',
        'spec.cloudInit: Forbidden: cloudInit must not be set when mode is External',
      ],
    ],
    [
      'two sources of cloud-init',
      { provider: 'p', cloudInit: { inline: 'x', secretRef: { name: 's' } } },
      ['spec.cloudInit: Invalid value: "object": exactly one of inline and secretRef must be set'],
    ],
    [
      'a timeout above the interval',
      { provider: 'p', healthCheck: { timeoutSeconds: 11 } },
      [
        'spec.healthCheck.timeoutSeconds: Invalid value: "object": ' +
          'timeoutSeconds must not be greater than intervalSeconds',
      ],
    ],
    [
      'an attribute that is no label key',
      { provider: 'p', attributes: { 'not a key': 'x' } },
      [
        'spec.attributes: Invalid value: "object": keys must be Kubernetes label keys: ' +
          'an optional DNS prefix, "/", and a name',
      ],
    ],
    [
      'a port of 0',
      { provider: 'p', port: 0 },
      ['spec.port: Invalid value: 0: spec.port in body should be greater than or equal to 1'],
    ],
  ])('judges %s', (_name, spec, expected) => {
    expect(errors(spec)).toEqual(expected);
  });

  it('keeps mode and provider as they are', () => {
    expect(errors({ provider: 'q' }, { provider: 'p' })).toEqual([
      'spec.provider: Invalid value: "string": provider is immutable',
    ]);
    expect(errors(external, { provider: 'p' })).toEqual([
      'spec.mode: Invalid value: "string": mode is immutable',
    ]);
    expect(errors({ provider: 'p', maxLeases: 2 }, { provider: 'p' })).toEqual([]);
  });

  it('refuses two conditions of one type in a status', () => {
    const condition = {
      type: 'Ready',
      status: 'True',
      reason: 'R',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    const object = { ...proxy({ provider: 'p' }), status: { conditions: [condition, condition] } };
    expect(schema.validate(object).map(renderFieldError)).toEqual([
      'status.conditions[1]: Duplicate value: map[string]interface {}{"type":"Ready"}',
    ]);
  });
});
