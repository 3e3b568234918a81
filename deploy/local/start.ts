/**
 * `npm start`: brings the stack up, shows one journey through it, and stays up until Ctrl-C.
 *
 * Exit codes: 0 after a stop by Ctrl-C or SIGTERM once everything is up, and for `--once` after
 * the fetched page; 130, 143 or 129 when a signal ends the start before that, 141 when nobody
 * reads its output any more; 2 for a faulty command line; 1 for everything else, with the reason
 * on standard error.
 */
import { once } from 'node:events';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import { systemClock as clock } from '#shared/clock.ts';
import { reasonOf, StartFault } from './fault.ts';
import { KubeError } from './kube/client.ts';
import { HELP, parseOptions, type StartOptions } from './options.ts';
import { humanOutput, jsonOutput, type Output } from './output.ts';
import { runStack } from './stack.ts';

/** npm hands signals on, but one that is killed cannot: then nobody is left to end the stack. */
const PARENT_CHECK_MS = 1_000;

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Why a start ends before it is up. */
class Interrupted extends Error {
  override readonly name = 'Interrupted';
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super(signal);
    this.exitCode = 128 + constants.signals[signal];
  }
}

process.exit(await main());

async function main(): Promise<number> {
  const startedMs = clock.monotonicMs();
  let options: StartOptions;
  try {
    options = parseOptions(process.argv.slice(2), process.env);
  } catch (error) {
    return report(error);
  }
  const write = (text: string) => void process.stdout.write(text);
  if (options.help) {
    write(HELP);
    return 0;
  }
  const output = options.json
    ? jsonOutput(write)
    : humanOutput(write, {
        elapsedMs: () => clock.monotonicMs() - startedMs,
        tokensFile: options.once ? undefined : join(options.stateDir, 'tokens.json'),
      });
  return run(options, output);
}

async function run(options: StartOptions, output: Output): Promise<number> {
  const ending = new AbortController();
  listenForSignals(ending);
  listenForCrashes(ending);
  if (process.env.npm_lifecycle_event !== undefined) void endWithParent(ending);
  const closing = new AsyncDisposableStack();
  let code: number;
  try {
    const fail = (fault: StartFault) => ending.abort(fault);
    const env = definedOnly(process.env);
    const root = resolve(import.meta.dirname, '../..');
    const deps = { clock, output, env, root, signal: ending.signal, fail };
    await runStack(deps, options, closing);
    code = options.once ? 0 : await untilEnded(ending.signal, output);
  } catch (error) {
    code = report(ending.signal.aborted ? ending.signal.reason : error, options, output);
  }
  try {
    await closing.disposeAsync();
  } catch (error) {
    process.stderr.write(`while stopping: ${reasonOf(error)}\n`);
    code ||= 1;
  }
  return code;
}

/** A second signal changes nothing: the stop under way is bounded, and leaves no process behind. */
function listenForSignals(ending: AbortController): void {
  for (const signal of STOP_SIGNALS) {
    process.on(signal, () => ending.abort(new Interrupted(signal)));
  }
}

/** Nothing but an orderly end also ends the child processes. */
function listenForCrashes(ending: AbortController): void {
  // `| head` has read enough, or the terminal was closed.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', () => ending.abort(new Interrupted('SIGPIPE')));
  }
  process.on('uncaughtException', (error) => {
    if (ending.signal.aborted) process.stderr.write(`while stopping: ${unexpected(error)}\n`);
    ending.abort(error);
  });
}

async function endWithParent(ending: AbortController): Promise<void> {
  const parent = process.ppid;
  while (process.ppid === parent) {
    await clock.sleep(PARENT_CHECK_MS, ending.signal).catch(() => {});
    if (ending.signal.aborted) return;
  }
  ending.abort(new Interrupted('SIGHUP'));
}

/** Resolves with the exit code when a person or a failed part ends the stack. */
async function untilEnded(signal: AbortSignal, output: Output): Promise<number> {
  if (!signal.aborted) await once(signal, 'abort');
  if (!(signal.reason instanceof Interrupted)) throw signal.reason;
  output.step({ step: 'stopping' });
  return 0;
}

/** One clear text on standard error, a JSON line where those are asked for; the exit code. */
function report(error: unknown, options?: StartOptions, output?: Output): number {
  if (error instanceof Interrupted) {
    output?.step({ step: 'stopping' });
    return error.exitCode;
  }
  const fault = error instanceof StartFault ? error : undefined;
  const message = fault?.message ?? unexpected(error);
  process.stderr.write(`${message}\n`);
  if (options?.json === true) output?.step({ step: 'failed', message });
  return fault?.exitCode ?? 1;
}

function unexpected(error: unknown): string {
  // The server's own words: missing rights in somebody's cluster, an object that it refuses.
  if (error instanceof KubeError) return `the Kubernetes API: ${error.message}`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function definedOnly(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
