/**
 * The edge as a process: the Worker in the real Workers runtime. Its secrets are in a file of the
 * state directory, its storage too.
 */
import { join } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import { answers, type Part, type PartDeps, startPart, whenAnswering } from './part.ts';
import { LOOPBACK } from './ports.ts';
import type { Supervisor } from './process/supervisor.ts';
import { type StateDir, type Tokens, writeSecretFile } from './state-dir.ts';

/** Keeps what reads `wrangler.toml` from asking the network for anything. */
const SETTINGS = {
  CI: '1',
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_SEND_ERROR_REPORTS: 'false',
  WRANGLER_HIDE_BANNER: 'true',
  NO_COLOR: '1',
} as const;

/** One that answered and then stays silent this long is started anew. */
const WATCH_MS = 2_000;
const SILENT_CHECKS_MAX = 3;
/** The same for one that has not answered yet. */
const START_CHECKS_MAX = 30;
const STOP_GRACE_MS = 3_000;
/** Where wrangler keeps Durable Objects, which earlier versions ran the edge with. */
const STORAGE = ['v3', 'do'];

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
  writeSecretFile(
    state.edgeSecrets,
    `DISCOVERY_TOKEN=${tokens.discovery}\nAGENT_TOKEN=${tokens.agent}\n`,
  );
  const part = startPart(deps, {
    name: 'edge',
    command: process.execPath,
    args: [join(root, 'deploy', 'local', 'edge', 'serve.ts'), ...servingArgs(options)],
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

function servingArgs({ root, port, state }: EdgeOptions): string[] {
  const args = {
    root,
    address: `${LOOPBACK}:${port}`,
    storage: join(state.edgeStorage, ...STORAGE),
    build: state.edgeBuild,
    secrets: state.edgeSecrets,
  };
  return Object.entries(args).map(([name, value]) => `--${name}=${value}`);
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
