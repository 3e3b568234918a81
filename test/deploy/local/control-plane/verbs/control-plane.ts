/** An in-memory control plane for the tests of its verbs. */

import type { StatusError } from '#deploy/local/control-plane/api/status-error.ts';
import { startControllers } from '#deploy/local/control-plane/controllers/start.ts';
import { isJsonObject, type JsonObject } from '#deploy/local/control-plane/json.ts';
import type { ApiResource } from '#deploy/local/control-plane/registry/api-resource.ts';
import { builtinResources } from '#deploy/local/control-plane/registry/builtin.ts';
import { ResourceRegistry } from '#deploy/local/control-plane/registry/resource-registry.ts';
import { ObjectStore } from '#deploy/local/control-plane/storage/object-store.ts';
import { FakeClock } from '#test/fakes/clock.ts';

export const WIDGET_CRD: JsonObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.test.example.com' },
  spec: {
    group: 'test.example.com',
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets', shortNames: ['wg'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                required: ['size'],
                properties: {
                  size: { type: 'integer', minimum: 1 },
                  colour: { type: 'string', enum: ['red', 'blue'], default: 'red' },
                  mode: { type: 'string' },
                },
                'x-kubernetes-validations': [
                  {
                    rule: '!has(oldSelf.mode) || self.mode == oldSelf.mode',
                    message: 'mode is immutable',
                  },
                ],
              },
              status: { type: 'object', properties: { phase: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
};

export function createTestControlPlane(options: { historyMax?: number } = {}) {
  const store = new ObjectStore(options);
  const clock = new FakeClock();
  const registry = new ResourceRegistry(builtinResources());
  let ids = 0;
  const newId = () => `uid-${++ids}`;
  // The same letter for a whole name, and each name comes twice.
  let draws = 0;
  const random = () => (Math.floor(draws++ / 10) % 27) / 27;
  const { verbs, stop } = startControllers({ store, registry, clock, random, newId });
  const resource = (group: string, plural: string): ApiResource => {
    const found = registry.find(group, 'v1', plural);
    if (found === undefined) throw new Error(`${plural} is not served`);
    return found;
  };
  const withWidgets = (): ApiResource => {
    verbs.create(resource('apiextensions.k8s.io', 'customresourcedefinitions'), '', WIDGET_CRD, {});
    return resource('test.example.com', 'widgets');
  };
  return { store, clock, registry, verbs, resource, withWidgets, stop };
}

export function widget(name: string, spec: JsonObject = { size: 1 }): JsonObject {
  return { apiVersion: 'test.example.com/v1', kind: 'Widget', metadata: { name }, spec };
}

export function pod(name: string, spec: JsonObject = {}): JsonObject {
  return {
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'squid:6' }], ...spec },
  };
}

/** The StatusError that `act` throws. */
export function refusal(act: () => unknown): StatusError {
  try {
    act();
  } catch (error) {
    if (error instanceof Error && error.name === 'StatusError') return error as StatusError;
    throw error;
  }
  throw new Error('nothing was refused');
}

/** A field of an object by its path. */
export function at(object: JsonObject, ...path: string[]): unknown {
  let value: unknown = object;
  for (const field of path) {
    value = isJsonObject(value as JsonObject) ? (value as JsonObject)[field] : undefined;
  }
  return value;
}
