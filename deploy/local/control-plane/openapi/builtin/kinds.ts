/** The built-in kinds that the control plane serves, by the package of their definitions. */

/** A group of definitions: one generated file. */
export interface BuiltinPackage {
  /** Name of the generated file, without `.gen.ts`. */
  readonly file: string;
  /** Prefix of the definition names. */
  readonly package: string;
  readonly group: string;
  readonly version: string;
  /** Client models that are resources, by kind. */
  readonly kinds: Readonly<Record<string, string>>;
  /** Further models to include, with all that they refer to. */
  readonly models: readonly string[];
}

/** Earlier packages own the models that later ones share with them. */
export const BUILTIN_PACKAGES: readonly BuiltinPackage[] = [
  {
    file: 'meta',
    package: 'io.k8s.apimachinery.pkg.apis.meta.v1',
    group: '',
    version: '',
    kinds: {},
    models: ['V1ObjectMeta', 'V1ListMeta', 'V1LabelSelector', 'V1Condition', 'V1Status'],
  },
  {
    file: 'core',
    package: 'io.k8s.api.core.v1',
    group: '',
    version: 'v1',
    kinds: {
      ConfigMap: 'V1ConfigMap',
      Event: 'CoreV1Event',
      Namespace: 'V1Namespace',
      Node: 'V1Node',
      Pod: 'V1Pod',
      Secret: 'V1Secret',
      Service: 'V1Service',
      ServiceAccount: 'V1ServiceAccount',
    },
    models: [],
  },
  {
    file: 'coordination',
    package: 'io.k8s.api.coordination.v1',
    group: 'coordination.k8s.io',
    version: 'v1',
    kinds: { Lease: 'V1Lease' },
    models: [],
  },
  {
    file: 'events',
    package: 'io.k8s.api.events.v1',
    group: 'events.k8s.io',
    version: 'v1',
    kinds: { Event: 'EventsV1Event' },
    models: [],
  },
  {
    file: 'rbac',
    package: 'io.k8s.api.rbac.v1',
    group: 'rbac.authorization.k8s.io',
    version: 'v1',
    kinds: {
      ClusterRole: 'V1ClusterRole',
      ClusterRoleBinding: 'V1ClusterRoleBinding',
      Role: 'V1Role',
      RoleBinding: 'V1RoleBinding',
    },
    models: [],
  },
  {
    file: 'apiextensions',
    package: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1',
    group: 'apiextensions.k8s.io',
    version: 'v1',
    kinds: { CustomResourceDefinition: 'V1CustomResourceDefinition' },
    models: [],
  },
  {
    file: 'authentication',
    package: 'io.k8s.api.authentication.v1',
    group: 'authentication.k8s.io',
    version: 'v1',
    kinds: { SelfSubjectReview: 'V1SelfSubjectReview', TokenReview: 'V1TokenReview' },
    models: [],
  },
  {
    file: 'authorization',
    package: 'io.k8s.api.authorization.v1',
    group: 'authorization.k8s.io',
    version: 'v1',
    kinds: {
      SelfSubjectAccessReview: 'V1SelfSubjectAccessReview',
      SelfSubjectRulesReview: 'V1SelfSubjectRulesReview',
      SubjectAccessReview: 'V1SubjectAccessReview',
    },
    models: [],
  },
];

/** `V1PodSpec`, `CoreV1Event` → `PodSpec`, `Event`. */
export function shortName(model: string): string {
  return model.replace(/^(?:[A-Z][a-z]+)?V1(?=[A-Z])/, '');
}
