/**
 * The process of the edge: builds the Worker, writes what the runtime reads into a folder for its
 * owner alone, and has the runtime serve it until either of them ends. Not `wrangler dev`: that
 * stands between crawlers and Worker and hides from it when one of them hangs up.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { parseArgs, parseEnv } from 'node:util';
import { edgeWorker, workerdProgram } from './edge-worker.ts';
import { SCRIPT_FILE, SOCKET, workerConfig } from './worker-config.ts';

const CONFIG_FILE = 'config.capnp';

const { values } = parseArgs({
  options: {
    root: { type: 'string', default: '' },
    address: { type: 'string', default: '' },
    storage: { type: 'string', default: '' },
    build: { type: 'string', default: '' },
    secrets: { type: 'string', default: '' },
  },
});
const { root, address, storage, build, secrets } = values;

const texts = Object.entries(parseEnv(readFileSync(secrets, 'utf8')));
const worker = await edgeWorker(
  root,
  Object.fromEntries(texts.map(([name, value = '']) => [name, value])),
);
for (const folder of [build, storage]) mkdirSync(folder, { recursive: true, mode: 0o700 });
writeFileSync(join(build, SCRIPT_FILE), worker.script);
writeFileSync(join(build, CONFIG_FILE), workerConfig(worker, storage), { mode: 0o600 });

const runtime = spawn(
  workerdProgram(),
  ['serve', CONFIG_FILE, `--socket-addr=${SOCKET}=${address}`],
  { cwd: build, stdio: 'inherit' },
);
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => runtime.kill(signal));
await once(runtime, 'exit');
const { exitCode, signalCode } = runtime;
process.exitCode = exitCode ?? 128 + (signalCode === null ? 0 : constants.signals[signalCode]);
