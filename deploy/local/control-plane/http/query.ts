/** Query parameters, and the body of a DELETE, as the options of the verbs. */
import { badRequest } from '../api/status-error.ts';
import type {
  DeleteOptions,
  FieldValidation,
  ListOptions,
  PatchOptions,
  PropagationPolicy,
  Selection,
  WatchOptions,
} from '../api/verbs/verbs.ts';
import { type JsonObject, type JsonValue, objectOf } from '../json.ts';
import { isTrue, type ResourceRequest } from './request-info.ts';

const FIELD_VALIDATIONS = ['Ignore', 'Warn', 'Strict'] as const;
const PROPAGATION_POLICIES = ['Orphan', 'Background', 'Foreground'] as const;
const FIELD_MANAGER_LENGTH_MAX = 128;

function text(query: URLSearchParams, name: string): string | undefined {
  return query.get(name) || undefined;
}

function wholeNumber(query: URLSearchParams, name: string): number | undefined {
  const value = text(query, name);
  if (value === undefined) return undefined;
  if (!/^\d{1,15}$/.test(value)) throw badRequest(`${name}: "${value}" is not a whole number`);
  return Number(value);
}

function flag(query: URLSearchParams, name: string): boolean | undefined {
  return query.has(name) ? isTrue(query.get(name)) : undefined;
}

function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((candidate) => candidate === value);
  if (found !== undefined) return found;
  const list = allowed.map((one) => `"${one}"`).join(', ');
  throw badRequest(`${name}: Unsupported value: "${value}": supported values: ${list}`);
}

function selection(query: URLSearchParams, info: ResourceRequest, namespaced: boolean): Selection {
  return {
    namespace: namespaced && info.namespace !== '' ? info.namespace : undefined,
    labelSelector: text(query, 'labelSelector'),
    fieldSelector: text(query, 'fieldSelector'),
  };
}

export function listOptions(
  query: URLSearchParams,
  info: ResourceRequest,
  namespaced: boolean,
): ListOptions {
  return {
    ...selection(query, info, namespaced),
    limit: wholeNumber(query, 'limit'),
    continue: text(query, 'continue'),
    resourceVersion: text(query, 'resourceVersion'),
    resourceVersionMatch: text(query, 'resourceVersionMatch'),
  };
}

export function watchOptions(
  query: URLSearchParams,
  info: ResourceRequest,
  namespaced: boolean,
): WatchOptions {
  return {
    ...selection(query, info, namespaced),
    resourceVersion: text(query, 'resourceVersion'),
    resourceVersionMatch: text(query, 'resourceVersionMatch'),
    allowWatchBookmarks: flag(query, 'allowWatchBookmarks'),
    sendInitialEvents: flag(query, 'sendInitialEvents'),
    timeoutSeconds: wholeNumber(query, 'timeoutSeconds'),
  };
}

/** Options of create, update and patch. */
export function writeOptions(query: URLSearchParams): PatchOptions {
  const validation = text(query, 'fieldValidation');
  const manager = text(query, 'fieldManager');
  if ((manager?.length ?? 0) > FIELD_MANAGER_LENGTH_MAX) {
    throw badRequest(`fieldManager: may not be longer than ${FIELD_MANAGER_LENGTH_MAX}`);
  }
  return {
    dryRun: dryRun(query.getAll('dryRun')),
    fieldManager: manager,
    fieldValidation:
      validation === undefined
        ? undefined
        : oneOf<FieldValidation>('fieldValidation', validation, FIELD_VALIDATIONS),
    force: flag(query, 'force'),
  };
}

/** The program before the slash of a `User-Agent` owns what it writes without naming itself. */
export function managerOfAgent(userAgent: string | undefined): string | undefined {
  const [program = ''] = (userAgent ?? '').split('/', 1);
  return program.slice(0, FIELD_MANAGER_LENGTH_MAX) || undefined;
}

function dryRun(values: readonly string[]): boolean | undefined {
  const given = values.filter((value) => value !== '');
  for (const value of given) oneOf('dryRun', value, ['All']);
  return given.length > 0 ? true : undefined;
}

/** A body takes the place of the query. */
export function deleteOptions(query: URLSearchParams, body: JsonObject): DeleteOptions {
  const policy = bodyText(body, 'propagationPolicy') ?? text(query, 'propagationPolicy');
  const grace = body.gracePeriodSeconds ?? wholeNumber(query, 'gracePeriodSeconds');
  if (grace !== undefined && grace !== null && !isWholeNumber(grace)) {
    throw badRequest('gracePeriodSeconds: must be a whole number of seconds, not negative');
  }
  const preconditions = objectOf(body.preconditions);
  const orphan = body.orphanDependents ?? flag(query, 'orphanDependents');
  return {
    preconditions: {
      uid: bodyText(preconditions, 'uid'),
      resourceVersion: bodyText(preconditions, 'resourceVersion'),
    },
    propagationPolicy:
      policy === undefined
        ? undefined
        : oneOf<PropagationPolicy>('propagationPolicy', policy, PROPAGATION_POLICIES),
    gracePeriodSeconds: grace ?? undefined,
    orphanDependents: typeof orphan === 'boolean' ? orphan : undefined,
    dryRun: dryRun([...query.getAll('dryRun'), ...bodyList(body.dryRun)]),
  };
}

function isWholeNumber(value: JsonValue): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}

function bodyText(body: JsonObject, field: string): string | undefined {
  const value = body[field];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function bodyList(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
