/**
 * A Worker in a process of the real runtime, `workerd`, which is ours alone: nothing stands in
 * front of it, its pid is known, and it can be killed and started again on the same storage and
 * port. Bytes on its port reach the Worker without `wrangler dev`, which costs more than an edge.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { workerdProgram } from '#deploy/local/edge/edge-worker.ts';
import {
  SCRIPT_FILE,
  SOCKET,
  type WorkerSpec,
  workerConfig,
} from '#deploy/local/edge/worker-config.ts';
import { systemClock as clock } from '#shared/clock.ts';

const HOST = '127.0.0.1';
const STORAGE_FOLDER = 'objects';
const START_MS_MAX = 20_000;
const STOP_GRACE_MS = 3_000;
/** Of the log, when the runtime did not start. */
const LOG_CHARS_SHOWN = 2_000;
/** Where the runtime reports its ports. */
const CONTROL_FD = 3;

export interface RuntimeOptions {
  /** Holds configuration (with secrets, for its owner alone), storage and log. */
  readonly dir: string;
  readonly worker: WorkerSpec;
  /** Absent: a free one. */
  readonly port?: number | undefined;
  /** Opens V8's inspector; it costs some speed. */
  readonly inspect?: boolean | undefined;
}

export interface Runtime {
  readonly url: string;
  readonly port: number;
  /** Of the runtime, not of anything around it. */
  readonly pid: number;
  /** Port of the inspector, if it was asked for. */
  readonly inspectorPort: number | undefined;
  /** Output of the runtime and of its Worker, of earlier starts too. */
  readonly logFile: string;
  /** Resolves when the process is gone, however that came. */
  readonly exited: Promise<void>;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM, then SIGKILL for one that lingers. */
  stop(): Promise<void>;
  /** The same Worker again, on the same storage and port; this process must be gone. */
  restart(): Promise<Runtime>;
}

/** Resolves when the runtime listens; rejects with the end of its log when it does not start. */
export function startRuntime(options: RuntimeOptions): Promise<Runtime> {
  const dir = resolve(options.dir);
  mkdirSync(join(dir, STORAGE_FOLDER), { recursive: true });
  writeFileSync(join(dir, SCRIPT_FILE), options.worker.script);
  writeFileSync(
    join(dir, 'config.capnp'),
    workerConfig(options.worker, join(dir, STORAGE_FOLDER)),
    { mode: 0o600 },
  );
  return run(dir, options.port ?? 0, options.inspect === true);
}

async function run(dir: string, wantedPort: number, inspect: boolean): Promise<Runtime> {
  const logFile = join(dir, 'workerd.log');
  const log = openSync(logFile, 'a', 0o600);
  const args = ['serve', 'config.capnp', `--control-fd=${CONTROL_FD}`];
  args.push(`--socket-addr=${SOCKET}=${HOST}:${wantedPort}`);
  if (inspect) args.push(`--inspector-addr=${HOST}:0`);
  const child = spawn(workerdProgram(), args, { cwd: dir, stdio: ['ignore', log, log, 'pipe'] });
  closeSync(log);
  const exited = new Promise<void>((done) => child.once('close', () => done()));
  const atExit = () => child.kill('SIGKILL');
  // Before whoever removes the folder at the exit.
  process.prependOnceListener('exit', atExit);
  void exited.then(() => process.off('exit', atExit));
  try {
    const ports = await portsOf(child, inspect);
    const { pid } = child;
    if (pid === undefined) throw new Error('no process was started');
    return {
      url: `http://${HOST}:${ports.http}`,
      port: ports.http,
      pid,
      inspectorPort: ports.inspector,
      logFile,
      exited,
      kill: () => end(child, exited, 'SIGKILL'),
      stop: () => end(child, exited, 'SIGTERM'),
      restart: () => run(dir, ports.http, inspect),
    };
  } catch (error) {
    await end(child, exited, 'SIGKILL');
    const said = readFileSync(logFile, 'utf8').slice(-LOG_CHARS_SHOWN);
    throw new Error(`workerd did not start: ${said}`, { cause: error });
  }
}

interface Ports {
  readonly http: number;
  readonly inspector: number | undefined;
}

/** Reads `{"event":"listen","socket":"http","port":1234}` and the like until all are there. */
async function portsOf(child: ChildProcess, inspect: boolean): Promise<Ports> {
  const control = child.stdio[CONTROL_FD];
  if (!(control instanceof Readable)) throw new Error('no control pipe');
  const signal = AbortSignal.timeout(START_MS_MAX);
  const failed = once(child, 'error', { signal }).then(([error]) => Promise.reject(error));
  failed.catch(() => undefined);
  let http: number | undefined;
  let inspector: number | undefined;
  const reading = async () => {
    for await (const line of createInterface({ input: control, signal })) {
      const message: { event?: string; port?: number } = JSON.parse(line);
      if (message.event === 'listen') http = message.port;
      else if (message.event === 'listen-inspector') inspector = message.port;
      if (http !== undefined && (!inspect || inspector !== undefined)) return { http, inspector };
    }
    throw new Error(signal.aborted ? 'it does not listen' : 'it ended');
  };
  return await Promise.race([reading(), failed]);
}

async function end(
  child: ChildProcess,
  exited: Promise<void>,
  signal: 'SIGKILL' | 'SIGTERM',
): Promise<void> {
  child.kill(signal);
  const waiting = new AbortController();
  const late = clock.sleep(STOP_GRACE_MS, waiting.signal).then(
    () => child.kill('SIGKILL'),
    () => false,
  );
  await exited;
  waiting.abort();
  await late;
}
