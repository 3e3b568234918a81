/** RoleBinding and ClusterRoleBinding: the role that a binding refers to never changes. */
import { isDeepStrictEqual } from 'node:util';
import { objectAt } from '../../api/object-meta.ts';
import type { Strategy } from '../api-resource.ts';
import { rbacStrategy } from './plain.ts';

export const roleBindingStrategy: Strategy = {
  ...rbacStrategy,
  validate: (binding, old) => {
    const roleRef = objectAt(binding, 'roleRef');
    if (old === undefined || isDeepStrictEqual(roleRef, objectAt(old, 'roleRef'))) return [];
    return [
      {
        type: 'FieldValueInvalid',
        field: 'roleRef',
        detail: 'cannot change roleRef',
        badValue: roleRef,
      },
    ];
  },
};
