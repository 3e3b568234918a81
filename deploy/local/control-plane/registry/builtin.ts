/** The resources that the control plane serves by itself, in discovery order. */
import { builtinDefinitionName, builtinSchema } from '../openapi/builtin/index.ts';
import { type ApiResource, type Strategy, storageName } from './api-resource.ts';
import { crdStrategy } from './strategies/custom-resource-definition.ts';
import { coreEventStrategy, eventStrategy } from './strategies/event.ts';
import { namespaceStrategy } from './strategies/namespace.ts';
import { leaseStrategy, plainStrategy, rbacStrategy, serviceStrategy } from './strategies/plain.ts';
import { podStrategy } from './strategies/pod.ts';
import { roleBindingStrategy } from './strategies/role-binding.ts';
import { configMapStrategy, secretStrategy } from './strategies/secret.ts';

interface Names {
  readonly kind: string;
  readonly plural: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly namespaced: boolean;
  readonly statusSubresource?: boolean;
  /** Absent: the resource's own storage name. */
  readonly storage?: string;
  readonly strategy: Strategy;
}

interface GroupVersion {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly Names[];
}

const CORE: readonly Names[] = [
  {
    kind: 'ConfigMap',
    plural: 'configmaps',
    shortNames: ['cm'],
    namespaced: true,
    strategy: configMapStrategy,
  },
  {
    kind: 'Event',
    plural: 'events',
    shortNames: ['ev'],
    namespaced: true,
    strategy: coreEventStrategy,
  },
  {
    kind: 'Namespace',
    plural: 'namespaces',
    shortNames: ['ns'],
    namespaced: false,
    statusSubresource: true,
    strategy: namespaceStrategy,
  },
  {
    kind: 'Node',
    plural: 'nodes',
    shortNames: ['no'],
    namespaced: false,
    statusSubresource: true,
    strategy: plainStrategy,
  },
  {
    kind: 'Pod',
    plural: 'pods',
    shortNames: ['po'],
    categories: ['all'],
    namespaced: true,
    statusSubresource: true,
    strategy: podStrategy,
  },
  { kind: 'Secret', plural: 'secrets', namespaced: true, strategy: secretStrategy },
  {
    kind: 'Service',
    plural: 'services',
    shortNames: ['svc'],
    categories: ['all'],
    namespaced: true,
    statusSubresource: true,
    strategy: serviceStrategy,
  },
  {
    kind: 'ServiceAccount',
    plural: 'serviceaccounts',
    shortNames: ['sa'],
    namespaced: true,
    strategy: plainStrategy,
  },
];

const RBAC: readonly Names[] = [
  { kind: 'ClusterRole', plural: 'clusterroles', namespaced: false, strategy: rbacStrategy },
  {
    kind: 'ClusterRoleBinding',
    plural: 'clusterrolebindings',
    namespaced: false,
    strategy: roleBindingStrategy,
  },
  { kind: 'Role', plural: 'roles', namespaced: true, strategy: rbacStrategy },
  { kind: 'RoleBinding', plural: 'rolebindings', namespaced: true, strategy: roleBindingStrategy },
];

const GROUP_VERSIONS: readonly GroupVersion[] = [
  { group: '', version: 'v1', resources: CORE },
  {
    group: 'events.k8s.io',
    version: 'v1',
    resources: [
      {
        kind: 'Event',
        plural: 'events',
        shortNames: ['ev'],
        namespaced: true,
        storage: storageName('events', ''),
        strategy: eventStrategy,
      },
    ],
  },
  { group: 'rbac.authorization.k8s.io', version: 'v1', resources: RBAC },
  {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    resources: [
      {
        kind: 'CustomResourceDefinition',
        plural: 'customresourcedefinitions',
        shortNames: ['crd', 'crds'],
        categories: ['api-extensions'],
        namespaced: false,
        statusSubresource: true,
        strategy: crdStrategy,
      },
    ],
  },
  {
    group: 'coordination.k8s.io',
    version: 'v1',
    resources: [{ kind: 'Lease', plural: 'leases', namespaced: true, strategy: leaseStrategy }],
  },
];

/** All built-in resources with their schemas compiled. */
export function builtinResources(): ApiResource[] {
  return GROUP_VERSIONS.flatMap(({ group, version, resources }) =>
    resources.map((names) => builtinResource(group, version, names)),
  );
}

function builtinResource(group: string, version: string, names: Names): ApiResource {
  const { kind, plural } = names;
  const schema = builtinSchema(group, version, kind);
  const definition = builtinDefinitionName(group, version, kind);
  if (schema === undefined || definition === undefined) {
    throw new Error(`no schema for the built-in kind ${kind}`);
  }
  return {
    group,
    version,
    kind,
    listKind: `${kind}List`,
    plural,
    singular: kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    namespaced: names.namespaced,
    storage: names.storage ?? storageName(plural, group),
    statusSubresource: names.statusSubresource ?? false,
    custom: false,
    openAPISchema: { $ref: `#/definitions/${definition}` },
    schema,
    strategy: names.strategy,
  };
}
