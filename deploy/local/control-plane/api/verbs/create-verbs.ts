/** The verbs over one store. */
import type { VerbDeps } from './context.ts';
import { createObject } from './create.ts';
import { deleteObject, deleteSelected } from './delete.ts';
import { getObject, listObjects } from './list.ts';
import { patchObject } from './patch.ts';
import { updateObject } from './update.ts';
import type { Verbs } from './verbs.ts';
import { watchObjects } from './watch.ts';

export type { VerbDeps } from './context.ts';
export type { Verbs } from './verbs.ts';

export function createVerbs(deps: VerbDeps): Verbs {
  return {
    get: (...request) => getObject(deps, ...request),
    list: (...request) => listObjects(deps, ...request),
    watch: (...request) => watchObjects(deps, ...request),
    create: (...request) => createObject(deps, ...request),
    update: (...request) => updateObject(deps, ...request),
    patch: (...request) => patchObject(deps, ...request),
    delete: (...request) => deleteObject(deps, ...request),
    deleteCollection: (...request) => deleteSelected(deps, ...request),
  };
}
