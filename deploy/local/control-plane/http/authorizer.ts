/**
 * RBAC: decides by the roles and bindings in the store, as they are at the moment of the request.
 * Rules only ever allow; what no rule allows is forbidden.
 */
import { namespaceOf, objectAt, stringAt } from '../api/object-meta.ts';
import { qualifiedResource } from '../api/status-error.ts';
import { type JsonObject, objects, strings } from '../json.ts';
import { storageName } from '../registry/api-resource.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import { ADMIN_GROUP, serviceAccountName, type User } from './users.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const ALL = '*';

/** What somebody wants to do. */
export type Access =
  | {
      readonly type: 'resource';
      readonly verb: string;
      readonly group: string;
      readonly plural: string;
      readonly subresource: string;
      readonly namespace: string;
      readonly name: string;
    }
  | { readonly type: 'path'; readonly verb: string; readonly path: string };

export interface Authorizer {
  allows(user: User, access: Access): boolean;
  /** Every rule that holds for a user in a namespace and cluster-wide. */
  rules(user: User, namespace: string): JsonObject[];
}

/** Reads roles and bindings anew for each question: a change counts from the next request on. */
export function createAuthorizer(store: ObjectStore): Authorizer {
  const rules = (user: User, namespace: string): JsonObject[] => [
    ...rulesOf(store, user, 'clusterrolebindings', ''),
    ...(namespace === '' ? [] : rulesOf(store, user, 'rolebindings', namespace)),
  ];
  return {
    rules,
    allows: (user, access) => {
      if (user.groups.includes(ADMIN_GROUP)) return true;
      const namespace = access.type === 'resource' ? access.namespace : '';
      return rules(user, namespace).some((rule) => ruleAllows(rule, access));
    },
  };
}

function rulesOf(store: ObjectStore, user: User, bindings: string, namespace: string) {
  return store
    .list(storageName(bindings, RBAC_GROUP), namespace)
    .filter((binding) => objects(binding.subjects).some((one) => isSubject(one, user, binding)))
    .flatMap((binding) => {
      const roleRef = objectAt(binding, 'roleRef');
      const isRole = stringAt(roleRef, 'kind') === 'Role';
      const role = store.get({
        resource: storageName(isRole ? 'roles' : 'clusterroles', RBAC_GROUP),
        namespace: isRole ? namespaceOf(binding) : '',
        name: stringAt(roleRef, 'name'),
      });
      return role === undefined ? [] : objects(role.rules);
    });
}

function isSubject(subject: JsonObject, user: User, binding: JsonObject): boolean {
  const name = stringAt(subject, 'name');
  switch (stringAt(subject, 'kind')) {
    case 'User':
      return name === user.name;
    case 'Group':
      return user.groups.includes(name);
    case 'ServiceAccount': {
      const namespace = stringAt(subject, 'namespace') || namespaceOf(binding);
      return serviceAccountName(namespace, name) === user.name;
    }
    default:
      return false;
  }
}

/** Whether one PolicyRule allows an access. */
export function ruleAllows(rule: JsonObject, access: Access): boolean {
  if (!holds(strings(rule.verbs), access.verb)) return false;
  if (access.type === 'path') return pathMatches(strings(rule.nonResourceURLs), access.path);
  const names = strings(rule.resourceNames);
  return (
    holds(strings(rule.apiGroups), access.group) &&
    resourceMatches(strings(rule.resources), access.plural, access.subresource) &&
    (names.length === 0 || names.includes(access.name))
  );
}

function holds(values: readonly string[], value: string): boolean {
  return values.includes(ALL) || values.includes(value);
}

function resourceMatches(rules: readonly string[], plural: string, subresource: string): boolean {
  if (subresource === '') return holds(rules, plural);
  return holds(rules, `${plural}/${subresource}`) || rules.includes(`${ALL}/${subresource}`);
}

function pathMatches(rules: readonly string[], path: string): boolean {
  return rules.some((rule) =>
    rule.endsWith(ALL) ? path.startsWith(rule.slice(0, -1)) : rule === path,
  );
}

/** The sentence of a refusal, as clients and people know it. */
export function refusal(user: User, access: Access): string {
  if (access.type === 'path') {
    return `forbidden: User "${user.name}" cannot ${access.verb} path "${access.path}"`;
  }
  const { verb, group, plural, subresource, namespace, name } = access;
  const resource = subresource === '' ? plural : `${plural}/${subresource}`;
  const scope = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  const subject = qualifiedResource({ group, plural, kind: '' });
  return (
    `${subject}${name === '' ? '' : ` "${name}"`} is forbidden: User "${user.name}" cannot ` +
    `${verb} resource "${resource}" in API group "${group}" ${scope}`
  );
}
