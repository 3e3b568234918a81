/** Which form an answer takes: what the client accepts, against what the server can make. */
import { notAcceptable } from '../api/status-error.ts';

/** One entry of an `Accept` header. */
export interface MediaRange {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

export type Encoding = 'json' | 'yaml';

export interface Presentation {
  readonly as: 'Object' | 'Table' | 'PartialObjectMetadata';
  readonly encoding: Encoding;
  /** Version of meta.k8s.io that a table is asked for in. */
  readonly metaVersion: string;
}

export const JSON_TYPE = 'application/json';
export const YAML_TYPE = 'application/yaml';
const OFFERED = [JSON_TYPE, YAML_TYPE];
const META_GROUP = 'meta.k8s.io';
const META_VERSIONS = new Set(['v1', 'v1beta1']);
const RANGES_MAX = 64;

/** The entries of an `Accept` header, most wanted first; an absent header accepts all. */
export function acceptedRanges(header: string | undefined): MediaRange[] {
  if (header === undefined || header.trim() === '') return [parseRange('*/*')];
  return header
    .split(',', RANGES_MAX)
    .map(parseRange)
    .filter((range) => quality(range) > 0)
    .sort((a, b) => quality(b) - quality(a));
}

function parseRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim());
  const pairs = parameters.map((parameter): [string, string] => {
    const [key = '', ...value] = parameter.split('=');
    return [key.trim().toLowerCase(), value.join('=').trim()];
  });
  return { type: type.toLowerCase(), parameters: new Map(pairs) };
}

function quality({ parameters }: MediaRange): number {
  const value = Number(parameters.get('q') ?? '1');
  return Number.isNaN(value) ? 0 : value;
}

/** The form of an object or list; throws 406 when the client takes none that is offered. */
export function presentationFor(header: string | undefined): Presentation {
  for (const range of acceptedRanges(header)) {
    const presentation = presentationOf(range);
    if (presentation !== undefined) return presentation;
  }
  throw notAcceptable(OFFERED);
}

function presentationOf(range: MediaRange): Presentation | undefined {
  const encoding = encodingOf(range);
  if (encoding === undefined) return undefined;
  const as = range.parameters.get('as');
  if (as === undefined) return { as: 'Object', encoding, metaVersion: '' };
  const metaVersion = range.parameters.get('v') ?? '';
  if (range.parameters.get('g') !== META_GROUP || !META_VERSIONS.has(metaVersion)) return undefined;
  if (as === 'Table') return { as: 'Table', encoding, metaVersion };
  if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') {
    return { as: 'PartialObjectMetadata', encoding, metaVersion };
  }
  return undefined;
}

/** The encoding of answers that have one form only. */
export function encodingFor(header: string | undefined): Encoding {
  for (const range of acceptedRanges(header)) {
    const encoding = encodingOf(range);
    if (encoding !== undefined) return encoding;
  }
  throw notAcceptable(OFFERED);
}

/** Whether JSON is in a range's type. */
export function coversJson({ type }: MediaRange): boolean {
  return type === JSON_TYPE || type === '*/*' || type === 'application/*';
}

function encodingOf(range: MediaRange): Encoding | undefined {
  if (coversJson(range)) return 'json';
  return range.type === YAML_TYPE ? 'yaml' : undefined;
}
