/**
 * A child process in a group of its own, with its output in a file. Ctrl-C in the terminal
 * reaches only the start process, which ends each group in order; ending a child means its whole
 * group, because the edge's process has the Workers runtime as a child of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Clock } from '#shared/clock.ts';
import { identify, isRunning, MARKER, markedGroup, type ProcessIdentity } from './identity.ts';
import { KILL_WAIT_MS, killAll, sendSignal } from './kill.ts';
import type { ProcessRecords } from './records.ts';

export interface ChildSpec {
  /** For the records and for messages. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The whole environment but for the marker, which is added. */
  readonly env: Readonly<Record<string, string>>;
  /** Open file descriptor that takes standard output and standard error. */
  readonly output: number;
  /** User and group to run as; only root can say so. */
  readonly uid?: number;
  readonly gid?: number;
}

export interface Exit {
  /** As a shell and a kubelet count it: 128 + the number of the signal. */
  readonly exitCode: number;
  readonly signal: NodeJS.Signals | undefined;
}

export interface Child {
  readonly name: string;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** SIGTERM to the group, after `graceMs` SIGKILL; resolves when the whole group is gone. */
  stop(graceMs: number): Promise<void>;
}

export interface ChildDeps {
  readonly clock: Clock;
  /** Value of the marker. */
  readonly stackId: string;
  readonly records: ProcessRecords;
}

/** Starts a process; rejects when the program cannot be started at all. */
export async function startChild(deps: ChildDeps, spec: ChildSpec): Promise<Child> {
  const child = spawn(spec.command, [...spec.args], {
    cwd: spec.cwd,
    env: { ...spec.env, [MARKER]: deps.stackId },
    stdio: ['ignore', spec.output, spec.output],
    detached: true,
    ...(spec.uid === undefined ? {} : { uid: spec.uid }),
    ...(spec.gid === undefined ? {} : { gid: spec.gid }),
  });
  const exited = exitOf(child);
  await started(child);
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${spec.name}: no process was started`);
  const identity = identify(pid);
  if (identity !== undefined) deps.records.add(spec.name, identity);
  const gone = exited.then(async (exit) => {
    // The leader has been reaped: what is left of its group is found by the marker.
    await killAll(deps.clock, () => markedGroup(pid, deps.stackId));
    if (identity !== undefined) deps.records.remove(identity);
    return exit;
  });
  return {
    name: spec.name,
    pid,
    exited: gone,
    stop: (graceMs) => stop(deps.clock, identity, gone, graceMs),
  };
}

function started(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
}

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      const number = signal === null ? 0 : constants.signals[signal];
      resolve({ exitCode: code ?? 128 + number, signal: signal ?? undefined });
    });
  });
}

async function stop(
  clock: Clock,
  leader: ProcessIdentity | undefined,
  gone: Promise<Exit>,
  graceMs: number,
): Promise<void> {
  signalGroup(leader, 'SIGTERM');
  if (await endsWithin(clock, gone, graceMs)) return;
  signalGroup(leader, 'SIGKILL');
  await endsWithin(clock, gone, KILL_WAIT_MS);
}

async function endsWithin(clock: Clock, gone: Promise<Exit>, ms: number): Promise<boolean> {
  const waiting = new AbortController();
  const late = clock.sleep(ms, waiting.signal).then(
    () => false,
    () => false,
  );
  const ended = await Promise.race([gone.then(() => true), late]);
  waiting.abort();
  return ended;
}

/** Only while that very leader lives: after it another group may have the number. */
function signalGroup(leader: ProcessIdentity | undefined, signal: NodeJS.Signals): void {
  if (leader !== undefined && isRunning(leader)) sendSignal(-leader.pid, signal);
}
