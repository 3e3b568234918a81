/** Who calls: bearer tokens and the users behind them. */
import { createHash, timingSafeEqual } from 'node:crypto';

export interface User {
  readonly name: string;
  readonly groups: readonly string[];
}

export const ADMIN_GROUP = 'system:masters';
export const AUTHENTICATED = 'system:authenticated';

/** A caller without a token: sees health and version and nothing else. */
export const ANONYMOUS: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

/** The administrator, whom no rule holds back. */
export const ADMIN: User = { name: 'kubernetes-admin', groups: [ADMIN_GROUP, AUTHENTICATED] };

/** The user that a service account is. */
export function serviceAccountUser(namespace: string, name: string): User {
  return {
    name: serviceAccountName(namespace, name),
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, AUTHENTICATED],
  };
}

/** The user name of a service account, as bindings and refusals spell it. */
export function serviceAccountName(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/** Tells the user by the `Authorization` header; undefined for a token that nobody has. */
export type Authenticate = (authorization: string | undefined) => User | undefined;

/** Knows the users by their tokens; a request without a token is anonymous. */
export function createAuthenticator(tokens: ReadonlyMap<string, User>): Authenticate {
  const known = [...tokens].map(([token, user]) => ({ digest: digestOf(token), user }));
  return (authorization) => {
    if (authorization === undefined) return ANONYMOUS;
    const token = /^bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (token === undefined) return undefined;
    const digest = digestOf(token);
    return known.find((candidate) => timingSafeEqual(candidate.digest, digest))?.user;
  };
}

/** Equal lengths and no order of comparison that would tell how much of a token is right. */
function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
