/** The common way of a built-in kind: nothing special anywhere. */
import type { Strategy } from '../api-resource.ts';

export const plainStrategy: Strategy = {
  nameRule: 'subdomain',
  unconditionalUpdate: true,
  createOnUpdate: false,
  tracksGeneration: false,
  gracefulDeletion: false,
  selectableFields: {},
};

/** Stored and shown, but nothing here forwards to a service: it gets no address. */
export const serviceStrategy: Strategy = { ...plainStrategy, nameRule: 'label' };

/** RBAC names may hold colons and upper case. */
export const rbacStrategy: Strategy = { ...plainStrategy, nameRule: 'path-segment' };

/** Leader election relies on stale updates being refused. */
export const leaseStrategy: Strategy = {
  ...plainStrategy,
  unconditionalUpdate: false,
  createOnUpdate: true,
};
