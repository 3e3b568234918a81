/**
 * What each crawler's token may have: the text of the setting `CLIENT_LIMITS`, and how the limits
 * are divided among the shards.
 */
import { wholeShare } from '#edge/ledger/shards.ts';
import type { Client } from '#edge/object/rpc.ts';

/** Who shows the one token that has no name, or none at all where that is allowed. */
export const DEFAULT_CLIENT = 'default';
export const ANONYMOUS_CLIENT = 'anonymous';
/** In the setting: everybody who has no line. */
const EVERYBODY = '*';

const LINES_MAX = 1_000;
const LEASES_MAX = 1_000_000;
const RATE_MAX = 1_000_000;

export interface Limits {
  /** Leases held at once; absent: any number. */
  readonly leases?: number;
  /** Requests per second; absent: any number. */
  readonly rate?: number;
}

/** By client's name, with the number of the line that sets them. */
export type ClientLimits = ReadonlyMap<string, Limits & { readonly line: number }>;

export type ParsedLimits =
  | { readonly ok: true; readonly limits: ClientLimits }
  | { readonly ok: false; readonly problem: string };

/** Reads `name leases=100 rate=20` lines; either part may be missing. */
export function parseClientLimits(text: string): ParsedLimits {
  const limits = new Map<string, Limits & { line: number }>();
  for (const [index, line] of text.split('\n').entries()) {
    const words = line.split(/\s+/).filter((word) => word !== '');
    const [name, ...parts] = words;
    if (name === undefined) continue;
    const parsed = parseParts(parts);
    const problem = limits.has(name) ? 'names a client that has a line already' : parsed.problem;
    if (problem !== undefined) return { ok: false, problem: `line ${index + 1} ${problem}` };
    limits.set(name, { ...parsed.limits, line: index + 1 });
  }
  if (limits.size > LINES_MAX) return { ok: false, problem: `has more than ${LINES_MAX} lines` };
  return { ok: true, limits };
}

function parseParts(parts: readonly string[]): { limits: Limits; problem?: string } {
  let limits: Limits = {};
  for (const part of parts) {
    const [, name, text] = /^(leases|rate)=(\d{1,7}(?:\.\d{1,6})?)$/.exec(part) ?? [];
    const value = Number(text);
    // A part that is not understood is not repeated: it may be a token in the wrong setting.
    if (name === undefined) return { limits, problem: FORM };
    if (name in limits) return { limits, problem: `has ${name} twice` };
    if (name === 'leases') {
      if (!Number.isInteger(value) || value < 1 || value > LEASES_MAX) {
        return { limits, problem: `sets leases to no whole number, 1 to ${LEASES_MAX}` };
      }
      limits = { ...limits, leases: value };
    } else {
      if (value <= 0 || value > RATE_MAX) {
        return { limits, problem: `sets rate to nothing above 0, up to ${RATE_MAX}` };
      }
      limits = { ...limits, rate: value };
    }
  }
  return parts.length === 0 ? { limits, problem: FORM } : { limits };
}

const FORM = 'is not of the form "name leases=100 rate=20"';

/** The first line about a client that does not exist: a limit for nobody is a slip of the pen. */
export function strayLine(limits: ClientLimits, clients: readonly string[]): number | undefined {
  for (const [name, { line }] of limits) {
    if (name !== EVERYBODY && !clients.includes(name)) return line;
  }
  return undefined;
}

/** The client with one shard's share of its limits; all shards' shares add up to them. */
export function clientAt(
  limits: ClientLimits,
  name: string,
  shard: number,
  shards: number,
): Client {
  const { leases, rate } = limits.get(name) ?? limits.get(EVERYBODY) ?? {};
  return {
    name,
    ...(leases === undefined ? {} : { leasesMax: wholeShare(leases, shard, shards) }),
    ...(rate === undefined ? {} : { perSecondMax: rate / shards }),
  };
}
