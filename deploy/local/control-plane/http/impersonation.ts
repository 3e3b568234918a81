/**
 * `kubectl --as`: a caller who may impersonate acts, and is held back, as the one whom the headers
 * name. Ignoring them would answer with the caller's own rights to a question about another's.
 */
import { badRequest, forbidden } from '../api/status-error.ts';
import { type Access, type Authorizer, refusal } from './authorizer.ts';
import { ANONYMOUS, AUTHENTICATED, serviceAccountUser, type User } from './users.ts';

const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

/** Headers by lower-case name, each with all of its values. */
export type DistinctHeaders = Readonly<Record<string, readonly string[] | undefined>>;

/** The user to act as: `caller` unless the headers name another; throws 403 when not allowed. */
export function impersonated(authorizer: Authorizer, caller: User, headers: DistinctHeaders): User {
  const [name = ''] = headers['impersonate-user'] ?? [];
  const groups = headers['impersonate-group'] ?? [];
  if (name === '') {
    const stray = Object.keys(headers).find((header) => header.startsWith('impersonate-'));
    if (stray === undefined) return caller;
    throw badRequest(`header ${stray} without a user in impersonate-user`);
  }
  const [, namespace, account] = SERVICE_ACCOUNT.exec(name) ?? [];
  if (namespace !== undefined && account !== undefined) {
    permit(authorizer, caller, 'serviceaccounts', account, namespace);
  } else permit(authorizer, caller, 'users', name);
  for (const group of groups) permit(authorizer, caller, 'groups', group);
  if (groups.length === 0 && namespace !== undefined && account !== undefined) {
    return serviceAccountUser(namespace, account);
  }
  const implied = name === ANONYMOUS.name ? ANONYMOUS.groups : [AUTHENTICATED];
  return { name, groups: [...new Set([...groups, ...implied])] };
}

function permit(
  authorizer: Authorizer,
  caller: User,
  plural: 'users' | 'groups' | 'serviceaccounts',
  name: string,
  namespace = '',
): void {
  const access: Access = {
    type: 'resource',
    verb: 'impersonate',
    group: '',
    plural,
    subresource: '',
    namespace,
    name,
  };
  if (authorizer.allows(caller, access)) return;
  throw forbidden({ group: '', plural, kind: '' }, name, refusal(caller, access));
}
