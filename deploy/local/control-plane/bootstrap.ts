/** The roles that a cluster has before anybody creates one, and who has them. */
import { StatusError } from './api/status-error.ts';
import type { Verbs } from './api/verbs/verbs.ts';
import type { JsonObject } from './json.ts';
import type { ResourceRegistry } from './registry/resource-registry.ts';

const RBAC = 'rbac.authorization.k8s.io';
const RBAC_VERSION = `${RBAC}/v1`;
const FIELD_MANAGER = 'kube-apiserver';

/** A cluster role and the groups that have it. */
interface DefaultRole {
  readonly name: string;
  readonly rules: readonly JsonObject[];
  readonly groups: readonly string[];
}

const VERSION_AND_HEALTH = [
  '/healthz',
  '/healthz/',
  '/livez',
  '/livez/',
  '/readyz',
  '/readyz/',
  '/version',
  '/version/',
];

const DEFAULT_ROLES: readonly DefaultRole[] = [
  {
    name: 'cluster-admin',
    rules: [
      { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
      { nonResourceURLs: ['*'], verbs: ['*'] },
    ],
    groups: ['system:masters'],
  },
  {
    name: 'system:basic-user',
    rules: [
      {
        apiGroups: ['authorization.k8s.io'],
        resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
        verbs: ['create'],
      },
      {
        apiGroups: ['authentication.k8s.io'],
        resources: ['selfsubjectreviews'],
        verbs: ['create'],
      },
    ],
    groups: ['system:authenticated'],
  },
  {
    name: 'system:discovery',
    rules: [
      {
        nonResourceURLs: [
          '/api',
          '/api/*',
          '/apis',
          '/apis/*',
          '/openapi',
          '/openapi/*',
          ...VERSION_AND_HEALTH,
        ],
        verbs: ['get'],
      },
    ],
    groups: ['system:authenticated'],
  },
  {
    name: 'system:public-info-viewer',
    rules: [{ nonResourceURLs: VERSION_AND_HEALTH, verbs: ['get'] }],
    groups: ['system:authenticated', 'system:unauthenticated'],
  },
];

/** Creates what is missing; what is there stays as it is. */
export function createDefaultRoles(registry: ResourceRegistry, verbs: Verbs): void {
  for (const role of DEFAULT_ROLES) {
    const metadata = {
      name: role.name,
      labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' },
    };
    ensure(registry, verbs, 'clusterroles', {
      apiVersion: RBAC_VERSION,
      kind: 'ClusterRole',
      metadata,
      rules: [...role.rules],
    });
    ensure(registry, verbs, 'clusterrolebindings', {
      apiVersion: RBAC_VERSION,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role.name },
      subjects: role.groups.map((name) => ({ apiGroup: RBAC, kind: 'Group', name })),
    });
  }
}

function ensure(registry: ResourceRegistry, verbs: Verbs, plural: string, object: JsonObject) {
  const resource = registry.find(RBAC, 'v1', plural);
  if (resource === undefined) throw new Error(`${plural} are not served`);
  try {
    verbs.create(resource, '', object, { fieldManager: FIELD_MANAGER });
  } catch (error) {
    if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error;
  }
}
