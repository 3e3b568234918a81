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
/** Each writes files that are committed, and with `--check` says whether they are stale. */
const GENERATORS = [
  'deploy/crds/generate.ts',
  'deploy/local/control-plane/openapi/builtin/generate.ts',
];
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

const IMPORT =
  /\b(import|export)\s+(type\s+)?(?:([^'"`;]*?)\sfrom\s+)?'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/g;

interface Import {
  /** A path from the root for our own files, else the specifier. */
  readonly path: string;
  /** Gone when Node strips the types. */
  readonly typeOnly: boolean;
}

/** Every import of a file, static and dynamic, and what it exports from elsewhere. */
function importsOf(file: string): Import[] {
  return [...text(file).matchAll(IMPORT)].map((match) => {
    const [, , type, names, fixed, dynamic] = match;
    const specifier = fixed ?? dynamic ?? '';
    const listed = names?.match(/^\s*\{([\s\S]*)\}\s*$/)?.[1]?.split(',') ?? [];
    const named = listed.map((name) => name.trim()).filter((name) => name !== '');
    const inline = named.length > 0 && named.every((name) => name.startsWith('type '));
    const typeOnly = type !== undefined || inline;
    if (specifier.startsWith('#')) return { path: specifier.slice(1), typeOnly };
    if (!specifier.startsWith('.')) return { path: specifier, typeOnly };
    return { path: normalize(join(dirname(file), specifier)), typeOnly };
  });
}

interface Rule {
  /** Folder (or file) that the rule is about; the first rule that matches a file holds. */
  readonly of: string;
  /** Own files it may import. Its own folder is always allowed, but for what has a rule of its own. */
  readonly own: readonly string[];
  /** Own files of which it may import types alone. */
  readonly types?: readonly string[];
  /** Packages it may not import, by prefix; absent: any. */
  readonly never?: readonly string[];
  /** The packages it may import; absent: any. */
  readonly only?: readonly string[];
}

const WORKERS_ONLY = ['cloudflare:'];
const NODE_ONLY = ['node:'];

/** All that most parts may know of providers. */
const PROVIDER_CONTRACT = ['agent/providers/provider.ts', 'agent/providers/errors.ts'];

/** The contract of providers and what they share, without any implementation. */
const PROVIDER_CORE = files.filter((file) => /^agent\/providers\/[^/]+\.ts$/.test(file));

/** The import table of docs/architecture.md. */
const RULES: readonly Rule[] = [
  { of: 'shared/', own: [], only: ['zod'] },
  { of: 'agent/runtime/', own: ['shared/clock.ts'] },
  { of: 'agent/kube/', own: ['shared/', 'agent/runtime/'] },
  { of: 'agent/providers/kubernetes/', own: [...PROVIDER_CORE, 'shared/', 'agent/kube/'] },
  { of: 'agent/providers/gcp/', own: [...PROVIDER_CORE, 'shared/', 'agent/runtime/'] },
  // Liftable: libvirt's protocol over any stream, without sockets.
  { of: 'agent/providers/kvm/libvirt/', own: [], only: ['@stellar/js-xdr', 'node:stream'] },
  { of: 'agent/providers/kvm/ssh/', own: ['shared/clock.ts', 'agent/runtime/'] },
  {
    of: 'agent/providers/kvm/',
    own: [...PROVIDER_CORE, 'agent/providers/kvm/', 'shared/', 'agent/kube/', 'agent/runtime/'],
  },
  { of: 'agent/providers/', own: ['shared/'] },
  { of: 'agent/health/', own: ['shared/', 'agent/runtime/'] },
  {
    of: 'agent/controller/',
    own: [
      'shared/',
      'agent/runtime/',
      'agent/kube/',
      ...PROVIDER_CONTRACT,
      'agent/providers/naming.ts',
    ],
    types: ['agent/health/verdict-reader.ts'],
  },
  { of: 'agent/gc/', own: ['shared/', 'agent/runtime/', 'agent/kube/', ...PROVIDER_CONTRACT] },
  {
    of: 'agent/provider-health/',
    own: ['shared/', 'agent/runtime/', 'agent/kube/', ...PROVIDER_CONTRACT],
  },
  {
    of: 'agent/inventory/',
    own: ['shared/', 'agent/runtime/'],
    types: ['agent/health/verdict-reader.ts'],
  },
  { of: 'agent/', own: ['agent/', 'shared/'] },
  {
    of: 'edge/ledger/',
    own: ['shared/'],
    never: [...NODE_ONLY, ...WORKERS_ONLY, 'hono', '@hono/'],
  },
  { of: 'edge/object/', own: ['edge/ledger/', 'shared/'], never: [...NODE_ONLY, 'hono', '@hono/'] },
  {
    of: 'edge/router/',
    own: ['shared/', 'edge/ledger/shards.ts', 'edge/object/rpc.ts'],
    never: [...NODE_ONLY, ...WORKERS_ONLY, 'hono', '@hono/'],
  },
  {
    of: 'edge/http/',
    own: ['shared/'],
    types: ['edge/env.ts', 'edge/object/rpc.ts', 'edge/router/'],
    never: [...NODE_ONLY, ...WORKERS_ONLY],
  },
  { of: 'edge/', own: ['edge/', 'shared/'], never: NODE_ONLY },
  { of: 'deploy/', own: ['deploy/', 'shared/'] },
];

const ruleOf = (file: string) => RULES.find(({ of }) => file.startsWith(of));

/**
 * Length of a line without what no formatter can break: the content of a literal that goes on to
 * the line's end, an expression in a template, a regular expression, an address in a comment.
 */
function lengthOf(line: string): number {
  const literal = /(['"`/])(?:(?!\1)[^\\]|\\.)*\1[\w.)\]},;:]*$|[`'"][^`'"]*$|^[^`'"]*`[,;)]*$/;
  return line.length > LINE_LENGTH_MAX && !/https?:\/\//.test(line)
    ? line.replace(literal, '').length
    : 0;
}

const READS_ENVIRONMENT = ['agent/config.ts', 'deploy/local/start.ts'];

interface Ban {
  readonly what: string;
  readonly pattern: RegExp;
  readonly except?: readonly string[];
}

const BANS: readonly Ban[] = [
  {
    what: 'time from outside the clock',
    pattern: /\bDate\.now\(|\bnew Date\(\)|\bset(?:Timeout|Interval)\(|\bperformance\.now\(/,
  },
  { what: 'chance from outside', pattern: /\bMath\.random\(/ },
  // Settings enter by one file of each program; everything else is handed them.
  { what: 'the environment', pattern: /\bprocess\.env\b/, except: READS_ENVIRONMENT },
  { what: 'any', pattern: /:\s*any\b|\bas any\b|<any>/ },
  { what: 'enums and decorators', pattern: /^\s*(?:export )?(?:const )?enum \w|^\s*@\w+\(/m },
];

/** What a check finds, by file; the whole list shows at once what is wrong where. */
function findings(
  of: readonly string[],
  check: (file: string) => readonly unknown[],
): Record<string, readonly unknown[]> {
  const found = of.map((file): [string, readonly unknown[]] => [file, check(file)]);
  return Object.fromEntries(found.filter(([, faults]) => faults.length > 0));
}

describe('every file', () => {
  it('imports what exists', () => {
    const missing = findings(files, (file) => {
      const ours = importsOf(file).filter(({ path }) => /\.(?:ts|mjs|json)$/.test(path));
      return ours.filter(({ path }) => !existsSync(join(ROOT, path)));
    });
    expect(missing).toEqual({});
  });

  it('imports only what the import table allows', () => {
    const refused = findings(sources, (file) => {
      const rule = ruleOf(file);
      if (rule === undefined) return file === 'vitest.config.ts' ? [] : ['is in no folder'];
      return importsOf(file).filter(({ path, typeOnly }) => {
        const under = (prefixes: readonly string[] = []) =>
          prefixes.some((prefix) => path.startsWith(prefix));
        if (!path.endsWith('.ts')) return under(rule.never) || rule.only?.includes(path) === false;
        const isOwn = ruleOf(path) === rule || under(rule.own);
        return !isOwn && !(typeOnly && under(rule.types));
      });
    });
    expect(refused).toEqual({});
  });

  it('can be read in one go', () => {
    const long = findings(written, (file) => {
      const lines = text(file).split('\n').length - 1;
      const linesMax = SHORTER[file] ?? FILE_LINES_MAX;
      return lines > linesMax ? [`${lines} lines of at most ${linesMax}`] : [];
    });
    expect(long).toEqual({});
  });

  it('keeps its lines short', () => {
    const long = findings(written, (file) =>
      text(file)
        .split('\n')
        .filter((line) => lengthOf(line) > LINE_LENGTH_MAX),
    );
    expect(long).toEqual({});
  });

  it('leaves alone what is banned', () => {
    const found = findings(
      sources.filter((file) => file !== CLOCK),
      (file) => {
        const bans = BANS.filter(({ except }) => except?.includes(file) !== true);
        return bans.filter(({ pattern }) => pattern.test(code(file))).map(({ what }) => what);
      },
    );
    expect(found).toEqual({});
  });

  it('leaves nothing for later', () => {
    const found = findings(written, (file) => [
      // One that cannot run says why: by `context.skip(reason)`, or in its name by `skipIf`.
      ...(code(file).match(/\b(?:it|test|describe)\.(?:only|to[d]o|skip)\b/g) ?? []),
      // A letter in brackets: the patterns match what is meant, and not themselves.
      ...(text(file).match(/\b(?:TO[D]O|FIX[M]E)\b/g) ?? []),
    ]);
    expect(found).toEqual({});
  });

  it('has its tests where its own path says', () => {
    const whole = /^test\/(?:conformance|integration|e2e|bench)\/|^test\/[^/]+$/;
    const tests = files.filter((file) => file.endsWith('.test.ts') && !whole.test(file));
    const folders = new Set(sources.map((file) => dirname(file)));
    const astray = tests.filter((file) => {
      const path = file.replace(/^test\//, '').replace(/(?:\.[a-z]+)?\.test\.ts$/, '');
      // What takes many tests may have a folder of its own for them.
      return ![path, dirname(path), dirname(dirname(path))].some((one) => folders.has(one));
    });
    expect(astray).toEqual([]);
  });

  it('is generated anew when its source changes', () => {
    for (const generator of GENERATORS) {
      execFileSync(process.execPath, [join(ROOT, generator), '--check'], { cwd: ROOT });
    }
  });
});
