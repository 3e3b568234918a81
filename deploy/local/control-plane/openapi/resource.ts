/** What the OpenAPI documents need to know about a served resource. */
import type { JsonObject } from '../json.ts';
import { builtinDefinitionName } from './builtin/index.ts';

export interface OpenApiResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly namespaced: boolean;
  readonly statusSubresource: boolean;
  /** From a CustomResourceDefinition: its schema is described, not that of a built-in kind. */
  readonly custom: boolean;
  /** The `openAPIV3Schema` of a custom resource. */
  readonly openAPISchema: JsonObject;
}

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
