/**
 * The edge as a process: `wrangler dev`, which runs the Worker in the real Workers runtime. Its
 * secrets are in a file of the state directory, its storage too.
 */
import { existsSync, mkdirSync, mkdtempSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import { errnoOf, StartFault } from './fault.ts';
import { answers, type Part, type PartDeps, startPart, whenAnswering } from './part.ts';
import { LOOPBACK } from './ports.ts';
import type { Supervisor } from './process/supervisor.ts';
import { type StateDir, type Tokens, writeSecretFile } from './state-dir.ts';

/** Keeps wrangler from asking the network for anything, and its output in the one log. */
const SETTINGS = {
  CI: '1',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_SEND_ERROR_REPORTS: 'false',
  WRANGLER_HIDE_BANNER: 'true',
  // A file of its own for debugging, which grows with each request and which nobody would bound.
  WRANGLER_WRITE_LOGS: 'false',
  NO_COLOR: '1',
} as const;

/** Wrangler restarts a runtime that dies; one that stays silent this long is started anew. */
const WATCH_MS = 2_000;
const SILENT_CHECKS_MAX = 3;
/** The same for one that has not answered yet. */
const START_CHECKS_MAX = 30;
const STOP_GRACE_MS = 3_000;

export interface EdgeOptions {
  /** Root of the repository. */
  readonly root: string;
  readonly port: number;
  readonly state: StateDir;
  readonly tokens: Tokens;
  /** Environment of the start, which the process inherits. */
  readonly env: Readonly<Record<string, string>>;
}

export interface Edge {
  readonly url: string;
  readonly part: Part;
  /** Resolves when it answers. */
  ready(signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the edge and watches over it. */
export function startEdge(deps: PartDeps, options: EdgeOptions): Edge {
  const { root, port, state, tokens } = options;
  if (existsSync(join(root, '.dev.vars'))) {
    throw new StartFault(
      '.dev.vars: wrangler would take it in place of the tokens of this stack; move it away',
    );
  }
  requireScratch(root);
  writeSecretFile(
    state.edgeSecrets,
    `DISCOVERY_TOKEN=${tokens.discovery}\nAGENT_TOKEN=${tokens.agent}\n`,
  );
  const part = startPart(deps, {
    name: 'edge',
    command: process.execPath,
    args: [join(root, 'node_modules', 'wrangler', 'bin', 'wrangler.js'), ...wranglerArgs(options)],
    cwd: root,
    env: { ...options.env, ...SETTINGS },
  });
  const url = `http://${LOOPBACK}:${port}`;
  const stopping = new AbortController();
  const watching = watchOver(deps.clock, part, `${url}/healthz`, stopping.signal);
  return {
    url,
    part,
    ready: (signal) => whenAnswering(deps.clock, `${url}/healthz`, signal),
    async stop() {
      stopping.abort();
      await part.stop(STOP_GRACE_MS);
      await watching;
    },
  };
}

/** Wrangler builds in a folder of the checkout, and without it would fail again and again. */
export function requireScratch(root: string): void {
  const scratch = join(root, '.wrangler', 'tmp');
  try {
    mkdirSync(scratch, { recursive: true });
    rmdirSync(mkdtempSync(join(scratch, 'probe-')));
  } catch (cause) {
    const why = errnoOf(cause) ?? 'unknown error';
    throw new StartFault(`${scratch}: wrangler must be able to write there (${why})`, { cause });
  }
}

/** Command line of `wrangler dev`. Port 0 of the inspector lets two stacks run side by side. */
function wranglerArgs({ root, port, state }: EdgeOptions): string[] {
  return [
    'dev',
    '--config',
    join(root, 'wrangler.toml'),
    '--local',
    '--ip',
    LOOPBACK,
    '--port',
    String(port),
    '--inspector-port',
    '0',
    '--persist-to',
    state.edgeStorage,
    '--env-file',
    state.edgeSecrets,
    '--show-interactive-dev-session=false',
    '--log-level',
    'info',
  ];
}

/** Ends the process of `part` when `url` stays silent; its supervisor starts the next one. */
export async function watchOver(
  clock: Clock,
  part: { readonly supervisor: Pick<Supervisor, 'current'> },
  url: string,
  signal: AbortSignal,
): Promise<void> {
  let watched: number | undefined;
  let silent = 0;
  let silentMax = START_CHECKS_MAX;
  while (!signal.aborted) {
    await clock.sleep(WATCH_MS, signal).catch(() => {});
    const child = part.supervisor.current();
    if (signal.aborted || child === undefined) continue;
    if (child.pid !== watched) {
      watched = child.pid;
      silent = 0;
      silentMax = START_CHECKS_MAX;
    }
    if (await answers(url, signal)) {
      silent = 0;
      silentMax = SILENT_CHECKS_MAX;
    } else if (++silent >= silentMax) await child.stop(0);
  }
}
