/** Resources to describe in the tests of the OpenAPI documents. */
import type { OpenApiResource } from '#deploy/local/control-plane/openapi/resource.ts';

export const pods: OpenApiResource = {
  group: '',
  version: 'v1',
  kind: 'Pod',
  listKind: 'PodList',
  plural: 'pods',
  namespaced: true,
  statusSubresource: true,
  custom: false,
  openAPISchema: {},
};

export const crds: OpenApiResource = {
  ...pods,
  group: 'apiextensions.k8s.io',
  kind: 'CustomResourceDefinition',
  listKind: 'CustomResourceDefinitionList',
  plural: 'customresourcedefinitions',
  namespaced: false,
};

export const things: OpenApiResource = {
  group: 'crawl.example.com',
  version: 'v1alpha1',
  kind: 'Thing',
  listKind: 'ThingList',
  plural: 'things',
  namespaced: true,
  statusSubresource: false,
  custom: true,
  openAPISchema: {
    type: 'object',
    description: 'A thing.',
    properties: {
      spec: {
        type: 'object',
        required: ['size'],
        properties: {
          size: { type: 'integer', minimum: 1, default: 3 },
          either: {
            'x-kubernetes-int-or-string': true,
            anyOf: [{ type: 'integer' }, { type: 'string' }],
          },
          maybe: { type: 'object', nullable: true, properties: { a: { type: 'string' } } },
          open: {
            type: 'object',
            'x-kubernetes-preserve-unknown-fields': true,
            properties: { a: { type: 'string' } },
          },
        },
      },
    },
  },
};
