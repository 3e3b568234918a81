/** The structure of the tree as tests: who may import whom, how long files are, what is banned. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');
const FILE_LINES_MAX = 500;
const LINE_LENGTH_MAX = 100;
/** Composition roots stay readable at a glance. */
const SHORTER: Readonly<Record<string, number>> = { 'agent/main.ts': 150, 'edge/worker.ts': 50 };
const CLOCK = 'shared/clock.ts';

const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.ts'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(ROOT, file)));
const written = files.filter((file) => !file.endsWith('.gen.ts'));
const sources = written.filter((file) => !file.startsWith('test/'));
const text = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** What stands in a file without its comments and the contents of its strings. */
function code(file: string): string {
  return text(file)
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/(?<!:)\/\/.*$/gm, '')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'/g, "''")
    .replaceAll(/`(?:[^`\\]|\\.)*`/g, '``');
}

const SPECIFIER =
  /\b(?:import|export)\s+(?:type\s+)?(?:[^'"`;]*?\sfrom\s+)?'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/g;

/** Every import of a file: a path from the root for our own files, else the specifier. */
function importsOf(file: string): string[] {
  return [...text(file).matchAll(SPECIFIER)].map((match) => {
    const specifier = match[1] ?? match[2] ?? '';
    if (specifier.startsWith('#')) return specifier.slice(1);
    if (specifier.startsWith('.')) return normalize(join(dirname(file), specifier));
    return specifier;
  });
}

interface Rule {
  /** Folder (or file) that the rule is about; the first rule that matches a file holds. */
  readonly of: string;
  /** Own files it may import. Its own folder is always allowed. */
  readonly own: readonly string[];
  /** Packages it may not import, by prefix; absent: any. */
  readonly never?: readonly string[];
}

const WORKERS_ONLY = ['cloudflare:'];
const NODE_ONLY = ['node:'];

/** The import table of docs/architecture.md. */
const RULES: readonly Rule[] = [
  { of: 'shared/', own: [], never: [...NODE_ONLY, ...WORKERS_ONLY, 'hono', 'undici'] },
  { of: 'agent/runtime/', own: ['shared/clock.ts'] },
  { of: 'agent/kube/', own: ['shared/', 'agent/runtime/'] },
  { of: 'agent/providers/kubernetes/', own: ['agent/providers/', 'shared/', 'agent/kube/'] },
  { of: 'agent/providers/', own: ['shared/'] },
  { of: 'agent/health/', own: ['shared/', 'agent/runtime/'] },
  {
    of: 'agent/controller/',
    own: [
      'shared/',
      'agent/runtime/',
      'agent/kube/',
      'agent/providers/provider.ts',
      'agent/providers/errors.ts',
      'agent/providers/naming.ts',
      'agent/health/verdict-reader.ts',
    ],
  },
  {
    of: 'agent/inventory/',
    own: ['shared/', 'agent/runtime/', 'agent/health/verdict-reader.ts'],
  },
  { of: 'agent/', own: ['agent/', 'shared/'] },
  {
    of: 'edge/ledger/',
    own: ['shared/'],
    never: [...NODE_ONLY, ...WORKERS_ONLY, 'hono', '@hono/'],
  },
  { of: 'edge/object/', own: ['edge/ledger/', 'shared/'], never: [...NODE_ONLY, 'hono', '@hono/'] },
  {
    of: 'edge/http/',
    own: ['shared/', 'edge/env.ts', 'edge/object/rpc.ts'],
    never: [...NODE_ONLY, ...WORKERS_ONLY],
  },
  { of: 'edge/', own: ['edge/', 'shared/'], never: NODE_ONLY },
  { of: 'deploy/', own: ['deploy/', 'shared/'] },
];

describe('imports', () => {
  it.each(files)('of %s exist', (file) => {
    const ours = importsOf(file).filter((path) => /\.(?:ts|mjs|json)$/.test(path));
    const missing = ours.filter((path) => !existsSync(join(ROOT, path)));
    expect(missing).toEqual([]);
  });

  it.each(sources)('of %s follow the import table', (file) => {
    const rule = RULES.find(({ of }) => file.startsWith(of));
    if (rule === undefined) return expect(file).toBe('vitest.config.ts');
    const refused = importsOf(file).filter((path) => {
      if (!path.endsWith('.ts')) return rule.never?.some((prefix) => path.startsWith(prefix));
      return !path.startsWith(rule.of) && !rule.own.some((prefix) => path.startsWith(prefix));
    });
    expect(refused).toEqual([]);
  });
});

describe('sizes', () => {
  it.each(written)('of %s stay readable', (file) => {
    const lines = text(file).split('\n');
    expect(lines.length - 1).toBeLessThanOrEqual(SHORTER[file] ?? FILE_LINES_MAX);
    // A line that is one long literal cannot be broken; the formatter breaks everything else.
    const long = lines.filter((line) => line.length > LINE_LENGTH_MAX && !/['"`/]/.test(line));
    expect(long).toEqual([]);
  });
});

const BANS: readonly { readonly what: string; readonly pattern: RegExp; readonly in?: RegExp }[] = [
  {
    what: 'time from outside the clock',
    pattern: /\bDate\.now\(|\bnew Date\(\)|\bset(?:Timeout|Interval)\(|\bperformance\.now\(/,
  },
  { what: 'chance from outside', pattern: /\bMath\.random\(/ },
  { what: 'any', pattern: /:\s*any\b|\bas any\b|<any>/ },
  { what: 'enums and decorators', pattern: /^\s*(?:export )?(?:const )?enum \w|^\s*@\w+\(/m },
];

describe('bans', () => {
  it.each(sources.filter((file) => file !== CLOCK))('are kept by %s', (file) => {
    const found = BANS.filter(({ pattern }) => pattern.test(code(file))).map(({ what }) => what);
    expect(found).toEqual([]);
  });

  it.each(written.filter((file) => file !== 'test/tidy.test.ts'))('leave nothing in %s', (file) => {
    expect(code(file)).not.toMatch(/\b(?:it|test|describe)\.(?:only|todo)\b/);
    expect(text(file)).not.toMatch(/\b(?:TODO|FIXME)\b/);
  });
});
