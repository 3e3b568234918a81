/** What the OpenAPI documents need to know about a served resource. */
import type { ApiResource } from '../registry/api-resource.ts';
import { builtinDefinitionName } from './builtin/index.ts';

/** Of a custom resource the `openAPISchema` is described, else the definition of the kind. */
export type OpenApiResource = Pick<
  ApiResource,
  | 'group'
  | 'version'
  | 'kind'
  | 'listKind'
  | 'plural'
  | 'namespaced'
  | 'statusSubresource'
  | 'custom'
  | 'openAPISchema'
>;

/** `io.k8s.api.core.v1.Pod`, or `com.example.crawl.v1alpha1.Proxy` for a custom resource. */
export function definitionName(resource: OpenApiResource): string {
  const { group, version, kind } = resource;
  const builtin = resource.custom ? undefined : builtinDefinitionName(group, version, kind);
  return builtin ?? [...group.split('.').reverse(), version, kind].join('.');
}

/** Name of the definition of the list of a resource. */
export function listDefinitionName(resource: OpenApiResource): string {
  return definitionName(resource).replace(/[^.]+$/, resource.listKind);
}

/** `api/v1`, `apis/crawl.example.com/v1alpha1`: the root of a group version, without slash. */
export function groupVersionPath({ group, version }: { group: string; version: string }): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}
