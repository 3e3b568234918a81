import { describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject, type JsonValue } from '#deploy/local/control-plane/json.ts';
import { openApiV2 } from '#deploy/local/control-plane/openapi/v2.ts';
import { openApiV3, openApiV3Index } from '#deploy/local/control-plane/openapi/v3.ts';
import { crds, pods, things } from './resources.ts';

const resources = [pods, crds, things];

function at(document: JsonValue | undefined, ...path: string[]): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>(
    (value, key) => (isJsonObject(value) ? value[key] : undefined),
    document,
  );
}

/** All `$ref`s in a document. */
function refs(value: JsonValue): string[] {
  if (Array.isArray(value)) return value.flatMap(refs);
  if (!isJsonObject(value)) return [];
  const own = typeof value.$ref === 'string' ? [value.$ref] : [];
  return [...own, ...Object.values(value).flatMap(refs)];
}

function resolves(document: JsonObject, ref: string): boolean {
  return at(document, ...ref.slice(2).split('/')) !== undefined;
}

describe('the OpenAPI v2 document', () => {
  const { document } = openApiV2(resources);
  const thing = 'com.example.crawl.v1alpha1.Thing';

  it('defines all that it refers to', () => {
    const dangling = refs(document).filter((ref) => !resolves(document, ref));
    expect(dangling).toEqual([]);
    expect(refs(document).length).toBeGreaterThan(100);
  });

  it('ties definitions to kinds', () => {
    expect(at(document, 'definitions', thing, 'x-kubernetes-group-version-kind')).toEqual([
      { group: 'crawl.example.com', kind: 'Thing', version: 'v1alpha1' },
    ]);
    expect(at(document, 'definitions', `${thing}List`, 'properties', 'items', 'items')).toEqual({
      $ref: `#/definitions/${thing}`,
    });
  });

  it('weakens what v2 cannot say, so that old clients refuse nothing that is valid', () => {
    const spec = at(document, 'definitions', thing, 'properties', 'spec', 'properties');
    expect(spec).toEqual({
      size: { type: 'integer', minimum: 1, default: 3 },
      either: { 'x-kubernetes-int-or-string': true, type: 'string', format: 'int-or-string' },
      maybe: {},
      open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    });
    expect(
      at(document, 'definitions', 'io.k8s.apimachinery.pkg.api.resource.Quantity', 'type'),
    ).toBe('string');
  });

  it('names the merge keys of lists', () => {
    const containers = at(
      document,
      'definitions',
      'io.k8s.api.core.v1.PodSpec',
      'properties',
      'containers',
    );
    expect(containers).toMatchObject({
      'x-kubernetes-patch-merge-key': 'name',
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-list-type': 'map',
    });
  });

  it('offers strategic merge patch for built-in kinds only', () => {
    const consumes = (path: string) => at(document, 'paths', path, 'patch', 'consumes');
    expect(consumes('/api/v1/namespaces/{namespace}/pods/{name}')).toContain(
      'application/strategic-merge-patch+json',
    );
    expect(
      consumes('/apis/crawl.example.com/v1alpha1/namespaces/{namespace}/things/{name}'),
    ).not.toContain('application/strategic-merge-patch+json');
  });

  it('has the paths that the kinds have', () => {
    expect(Object.keys(isJsonObject(document.paths) ? document.paths : {}).sort()).toEqual([
      '/api/v1/namespaces/{namespace}/pods',
      '/api/v1/namespaces/{namespace}/pods/{name}',
      '/api/v1/namespaces/{namespace}/pods/{name}/status',
      '/api/v1/pods',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}/status',
      '/apis/crawl.example.com/v1alpha1/namespaces/{namespace}/things',
      '/apis/crawl.example.com/v1alpha1/namespaces/{namespace}/things/{name}',
      '/apis/crawl.example.com/v1alpha1/things',
    ]);
  });
});

describe('the OpenAPI v3 documents', () => {
  const index = openApiV3Index(resources);

  it('are listed with a hash that follows their content', () => {
    const url = (path: string, from = index) => at(from, 'paths', path, 'serverRelativeURL');
    expect(url('api/v1')).toMatch(/^\/openapi\/v3\/api\/v1\?hash=[0-9A-F]{64}$/);
    expect(Object.keys(isJsonObject(index.paths) ? index.paths : {})).toEqual([
      'api/v1',
      'apis/apiextensions.k8s.io/v1',
      'apis/crawl.example.com/v1alpha1',
    ]);
    const changed = openApiV3Index([pods, { ...things, openAPISchema: { type: 'object' } }]);
    expect(url('api/v1', changed)).toBe(url('api/v1'));
    expect(url('apis/crawl.example.com/v1alpha1', changed)).not.toBe(
      url('apis/crawl.example.com/v1alpha1'),
    );
  });

  it.each([
    [{ group: '', version: 'v1' }],
    [{ group: 'apiextensions.k8s.io', version: 'v1' }],
    [{ group: 'crawl.example.com', version: 'v1alpha1' }],
  ])('of %j define all that they refer to', (groupVersion) => {
    const document = openApiV3(groupVersion, resources);
    expect(refs(document).filter((ref) => !resolves(document, ref))).toEqual([]);
    expect(Object.keys(isJsonObject(document.paths) ? document.paths : {}).length).toBeGreaterThan(
      2,
    );
  });

  it('tell clients that PATCH validates fields, and for which kind', () => {
    const document = openApiV3({ group: 'crawl.example.com', version: 'v1alpha1' }, resources);
    const path = '/apis/crawl.example.com/v1alpha1/namespaces/{namespace}/things/{name}';
    const patch = at(document, 'paths', path, 'patch');
    expect(at(patch, 'x-kubernetes-group-version-kind')).toEqual({
      group: 'crawl.example.com',
      kind: 'Thing',
      version: 'v1alpha1',
    });
    const parameters = at(patch, 'parameters');
    const names = Array.isArray(parameters) ? parameters.map((item) => at(item, 'name')) : [];
    expect(names).toEqual(['dryRun', 'fieldManager', 'fieldValidation', 'force']);
    expect(at(document, 'paths', path, 'get', 'x-kubernetes-group-version-kind')).toBeDefined();
  });

  it('keep the schema of a custom resource as it is, with the common fields added', () => {
    const document = openApiV3({ group: 'crawl.example.com', version: 'v1alpha1' }, resources);
    const thing = at(document, 'components', 'schemas', 'com.example.crawl.v1alpha1.Thing');
    expect(at(thing, 'properties', 'spec')).toEqual(at(things.openAPISchema, 'properties', 'spec'));
    expect(at(thing, 'properties', 'metadata')).toMatchObject({
      allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }],
    });
  });
});
