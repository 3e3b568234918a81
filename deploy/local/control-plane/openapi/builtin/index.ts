/** Definitions and compiled schemas of the built-in kinds. */
import type { JsonObject } from '../../json.ts';
import { compileResourceSchema, type ResourceSchema } from '../../schema/resource-schema.ts';
import { apiextensionsDefinitions } from './apiextensions.gen.ts';
import { authenticationDefinitions } from './authentication.gen.ts';
import { authorizationDefinitions } from './authorization.gen.ts';
import { coordinationDefinitions } from './coordination.gen.ts';
import { coreDefinitions } from './core.gen.ts';
import { eventsDefinitions } from './events.gen.ts';
import { BUILTIN_PACKAGES, shortName } from './kinds.ts';
import { metaDefinitions } from './meta.gen.ts';
import { rbacDefinitions } from './rbac.gen.ts';

/** Every definition of the built-in kinds, by full name; `$ref`s are `#/definitions/…`. */
export const builtinDefinitions: JsonObject = {
  ...metaDefinitions,
  ...coreDefinitions,
  ...coordinationDefinitions,
  ...eventsDefinitions,
  ...rbacDefinitions,
  ...apiextensionsDefinitions,
  ...authenticationDefinitions,
  ...authorizationDefinitions,
};

const compiled = new Map<string, ResourceSchema>();

/** Name of the definition of a built-in kind; undefined for kinds that are not built in. */
export function builtinDefinitionName(
  group: string,
  version: string,
  kind: string,
): string | undefined {
  const builtin = BUILTIN_PACKAGES.find(
    (candidate) =>
      candidate.group === group &&
      candidate.version === version &&
      Object.hasOwn(candidate.kinds, kind),
  );
  const model = builtin?.kinds[kind];
  return model === undefined ? undefined : `${builtin?.package}.${shortName(model)}`;
}

/** The compiled schema of a built-in kind; undefined for kinds that are not built in. */
export function builtinSchema(
  group: string,
  version: string,
  kind: string,
): ResourceSchema | undefined {
  const name = builtinDefinitionName(group, version, kind);
  if (name === undefined) return undefined;
  const known = compiled.get(name);
  if (known !== undefined) return known;
  const schema = compileResourceSchema(
    { $ref: `#/definitions/${name}` },
    { definitions: builtinDefinitions, lenientStatus: true },
  );
  compiled.set(name, schema);
  return schema;
}
