/** Flags with an environment variable behind each, Go style; knows no flag by name. Pure. */
import { parseArgs } from 'node:util';

export interface FlagSpec {
  /** Without the dashes. */
  readonly name: string;
  /** Environment variable that is read when the flag is not given. */
  readonly env: string;
  readonly kind: 'text' | 'boolean';
  /** What `--help` shows for the value, such as `URL`. */
  readonly value?: string;
  readonly default?: string;
  readonly help: string;
}

export interface FlagValue {
  readonly text: string;
  /** How faults name it: the flag, or the variable that it came from. */
  readonly source: string;
  readonly isDefault: boolean;
}

export interface FlagReading {
  /** By flag name; absent when neither given nor defaulted. */
  readonly values: ReadonlyMap<string, FlagValue>;
  readonly faults: readonly string[];
  readonly help: boolean;
  readonly version: boolean;
}

/** Reads every flag; a flag wins over its variable, the last one of several wins. */
export function readFlags(
  specs: readonly FlagSpec[],
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): FlagReading {
  const values = new Map<string, FlagValue>();
  for (const spec of specs) {
    const set = env[spec.env];
    if (set !== undefined && set !== '') {
      values.set(spec.name, { text: set, source: spec.env, isDefault: false });
    } else if (spec.default !== undefined) {
      const source = `--${spec.name}`;
      values.set(spec.name, { text: spec.default, source, isDefault: true });
    }
  }
  return { values, ...readArguments(specs, argv, values) };
}

function readArguments(
  specs: readonly FlagSpec[],
  argv: readonly string[],
  values: Map<string, FlagValue>,
): Omit<FlagReading, 'values'> {
  const byName = new Map(specs.map((spec) => [spec.name, spec]));
  const faults: string[] = [];
  let help = false;
  let version = false;
  // Not strict: it would stop at the first fault, and refuses `--flag=false`.
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      specs.map((spec) => [spec.name, { type: spec.kind === 'text' ? 'string' : 'boolean' }]),
    ),
    strict: false,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === 'positional') faults.push(`${token.value}: arguments are not taken`);
    if (token.kind !== 'option') continue;
    const spec = byName.get(token.name);
    if (token.name === 'help' || token.name === 'h') help = true;
    else if (token.name === 'version') version = true;
    else if (spec === undefined)
      faults.push(`${token.rawName}: unknown flag${similar(specs, token.name)}`);
    else {
      const text = spec.kind === 'boolean' ? (token.value ?? 'true') : token.value;
      const swallowed = token.inlineValue === false && text?.startsWith('--');
      if (text === undefined || swallowed) faults.push(`--${spec.name}: needs a value`);
      else values.set(spec.name, { text, source: `--${spec.name}`, isDefault: false });
    }
  }
  return { faults, help, version };
}

function similar(specs: readonly FlagSpec[], name: string): string {
  const found = specs.find((spec) => spec.name.startsWith(name) || name.startsWith(spec.name));
  return found === undefined ? '' : `; is --${found.name} meant?`;
}

/** The text of `--help`: one line for each flag. */
export function flagHelp(specs: readonly FlagSpec[]): string {
  const rows = specs.map((spec) => ({
    left: `  --${spec.name}${spec.value === undefined ? '' : `=${spec.value}`}`,
    right: `${spec.help}${spec.default ? ` (default ${spec.default})` : ''} [${spec.env}]`,
  }));
  const width = Math.max(...rows.map((row) => row.left.length));
  return rows.map((row) => `${row.left.padEnd(width)}  ${row.right}`).join('\n');
}

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
const DURATION_MS_MAX = 30 * 24 * UNIT_MS.h;

/** Milliseconds of a Go-style duration (`90s`, `1h30m`, `0`); undefined when it is none. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0;
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text)) return undefined;
  let totalMs = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) {
    totalMs += Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
  }
  return totalMs > DURATION_MS_MAX ? undefined : Math.round(totalMs);
}
