import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '#deploy/local/control-plane/json.ts';
import { generateBuiltins } from '#deploy/local/control-plane/openapi/builtin/generate.ts';
import {
  builtinDefinitions,
  builtinSchema,
} from '#deploy/local/control-plane/openapi/builtin/index.ts';
import { BUILTIN_PACKAGES } from '#deploy/local/control-plane/openapi/builtin/kinds.ts';
import { PROPERTY_OVERLAY } from '#deploy/local/control-plane/openapi/builtin/overlay.ts';
import { renderFieldError } from '#deploy/local/control-plane/schema/field-error.ts';

const kinds = BUILTIN_PACKAGES.flatMap(({ group, version, kinds: served }) =>
  Object.keys(served).map((kind) => [group, version, kind] as const),
);

describe('the built-in kinds', () => {
  it('are what the installed Kubernetes client says they are', async () => {
    const folder = new URL(
      '../../../../../deploy/local/control-plane/openapi/builtin/',
      import.meta.url,
    );
    for (const [name, text] of await generateBuiltins()) {
      expect(readFileSync(new URL(name, folder), 'utf8') === text, `${name} is stale`).toBe(true);
    }
  });

  it.each(kinds)('%s/%s %s has a schema', (group, version, kind) => {
    const schema = builtinSchema(group, version, kind);
    expect(schema?.problems).toEqual([]);
    expect(schema?.root.properties.has('metadata')).toBe(true);
  });

  it('have every property that the overlay speaks of', () => {
    const known = Object.entries(builtinDefinitions).flatMap(([name, definition]) => {
      const properties = JSON.parse(JSON.stringify(definition)).properties ?? {};
      return Object.keys(properties).map((property) => `${name.split('.').at(-1)}.${property}`);
    });
    const unknown = Object.keys(PROPERTY_OVERLAY).filter((path) => !known.includes(path));
    expect(unknown).toEqual([]);
  });

  it('are no schema for anything else', () => {
    expect(builtinSchema('', 'v1', 'Proxy')).toBeUndefined();
    expect(builtinSchema('', 'v1', 'constructor')).toBeUndefined();
  });
});

describe('the schema of pods', () => {
  const schema = builtinSchema('', 'v1', 'Pod');
  const pod = (spec: JsonObject): JsonObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec,
  });
  const errors = (object: JsonObject) => schema?.validate(object).map(renderFieldError);

  it('accepts quantities as text and as numbers, and ports by name or number', () => {
    const container = {
      name: 'c',
      image: 'i',
      resources: { requests: { cpu: 1, memory: '1Gi' }, limits: { cpu: 0.5 } },
      livenessProbe: { tcpSocket: { port: 'web' } },
      readinessProbe: { tcpSocket: { port: 80 } },
    };
    expect(errors(pod({ containers: [container] }))).toEqual([]);
  });

  it('names missing, unknown and wrong fields', () => {
    const object = pod({
      containers: [{ image: 'i', ports: [{ containerPort: 'x' }], imagee: 'j' }],
      restartPolicy: 'Sometimes',
    });
    expect(errors(object)).toEqual([
      'spec.containers[0].ports[0].containerPort: Invalid value: "string": ' +
        'spec.containers[0].ports[0].containerPort in body must be of type integer: "string"',
      'spec.containers[0].name: Required value',
      'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"',
    ]);
    expect(schema?.unknownFields(object)).toEqual(['spec.containers[0].imagee']);
  });

  it('demands nothing of a status, where absent fields are zero values', () => {
    const status = { containerStatuses: [{ name: 'c' }], phase: 'Running' };
    expect(errors({ ...pod({ containers: [{ name: 'c' }] }), status })).toEqual([]);
  });

  it('keeps every field of a real pod', () => {
    const object = pod({
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule' },
      ],
      volumes: [
        { name: 'v', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
      ],
      containers: [{ name: 'c', lifecycle: { preStop: { sleep: { seconds: 1 } } } }],
    });
    expect(schema?.prune(object)).toEqual(object);
  });
});

describe('the schema of CustomResourceDefinition', () => {
  it('contains itself, and keeps schemas of any depth', () => {
    const nested = {
      type: 'object',
      properties: {
        $ref: { type: 'string' },
        deep: { type: 'object', properties: { a: { type: 'array', items: { type: 'integer' } } } },
      },
    };
    const crd = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.g.io' },
      spec: {
        group: 'g.io',
        scope: 'Namespaced',
        names: { kind: 'Thing', plural: 'things' },
        versions: [
          { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: nested } },
        ],
      },
    };
    const schema = builtinSchema('apiextensions.k8s.io', 'v1', 'CustomResourceDefinition');
    expect(schema?.validate(crd)).toEqual([]);
    expect(schema?.prune(crd)).toEqual(crd);
  });
});
