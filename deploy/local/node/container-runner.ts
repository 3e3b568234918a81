/**
 * Runs one container of a pod as a process: starts it, probes it, and starts it again when the
 * restart policy says so, with the kubelet's growing waits. Reports each change of its state.
 */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import { reasonOf } from '../fault.ts';
import { type Child, type ChildDeps, type Exit, startChild } from '../process/child.ts';
import { boundLog, type LogFile, openLogFile } from '../process/log-file.ts';
import { nextBackoffMs } from './backoff.ts';
import { expand } from './container-env.ts';
import type { ContainerPlace, ImageAdapter, Invocation } from './image.ts';
import {
  type ContainerReport,
  type ContainerState,
  restarts,
  type Terminated,
} from './pod-status.ts';
import { networkAttempt, probeLoop } from './probe-loop.ts';

/** Exit code of a process that could not be started, as container runtimes have it. */
const START_FAILED_EXIT_CODE = 128;

export interface RunnerDeps {
  readonly clock: Clock;
  readonly child: ChildDeps;
  /** Adapter of the image; undefined when this node does not know it. */
  readonly image: ImageAdapter | undefined;
  readonly place: ContainerPlace;
  readonly logPath: string;
  readonly restartCount: number;
  /** Aborts when the pod ends; its grace is asked for when it does. */
  readonly signal: AbortSignal;
  /** Aborts when the node stops: a pod that ends already is then asked for its grace once more. */
  readonly nodeSignal: AbortSignal;
  graceMs(): number;
  onReport(report: ContainerReport): void;
  event(type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** Runs until the container has ended for good or `signal` aborts; then no process is left. */
export async function runContainer(deps: RunnerDeps): Promise<void> {
  const { place, signal, clock } = deps;
  const policy = place.pod.spec.restartPolicy;
  let report = initialReport(place.container, deps.restartCount);
  const tell = (change: Partial<ContainerReport>) => {
    report = { ...report, ...change };
    deps.onReport(report);
  };
  let backoffMs = 0;
  while (!signal.aborted) {
    if (deps.image === undefined) {
      backoffMs = nextBackoffMs(backoffMs, 0);
      await waitForImage(deps, tell, backoffMs);
      continue;
    }
    const end = await runOnce(deps, deps.image, tell);
    tell({ state: end, ready: false, started: false });
    if (signal.aborted || !restarts(policy, end.exitCode)) return;
    backoffMs = nextBackoffMs(backoffMs, end.finishedAtMs - end.startedAtMs);
    await crashLoop(deps, tell, end, backoffMs);
    await clock.sleep(backoffMs, signal).catch(() => {});
    if (!signal.aborted) tell({ restartCount: report.restartCount + 1 });
  }
}

type Tell = (change: Partial<ContainerReport>) => void;

/** What is reported of a container before anything happened to it. */
export function initialReport(
  container: { name: string; image: string },
  restartCount: number,
): ContainerReport {
  const { name, image } = container;
  const state: ContainerState = { kind: 'waiting', reason: 'ContainerCreating' };
  return { name, image, state, restartCount, ready: false, started: false };
}

/** As a kubelet does for an image that no registry has. */
async function waitForImage(deps: RunnerDeps, tell: Tell, backoffMs: number): Promise<void> {
  const { image } = deps.place.container;
  const message = `image "${image}" is not one that the local node can run`;
  deps.event('Warning', 'Failed', `Failed to pull image "${image}": ${message}`);
  tell({ state: { kind: 'waiting', reason: 'ErrImagePull', message } });
  await deps.clock.sleep(Math.min(backoffMs, 2_000), deps.signal).catch(() => {});
  if (deps.signal.aborted) return;
  const waiting = `Back-off pulling image "${image}": ${message}`;
  deps.event('Normal', 'BackOff', waiting);
  tell({ state: { kind: 'waiting', reason: 'ImagePullBackOff', message: waiting } });
  await deps.clock.sleep(backoffMs, deps.signal).catch(() => {});
}

async function crashLoop(
  deps: RunnerDeps,
  tell: Tell,
  end: Terminated,
  waitMs: number,
): Promise<void> {
  const { name } = deps.place.container;
  const message = `back-off ${waitMs / 1000}s restarting failed container=${name}`;
  deps.event('Warning', 'BackOff', message);
  tell({ state: { kind: 'waiting', reason: 'CrashLoopBackOff', message }, last: end });
}

/** One life of the container's process. */
async function runOnce(deps: RunnerDeps, image: ImageAdapter, tell: Tell): Promise<Terminated> {
  const { clock, place } = deps;
  const startedAtMs = clock.now();
  let log: LogFile | undefined;
  try {
    mkdirSync(dirname(deps.logPath), { recursive: true });
    log = openLogFile(deps.logPath, place.owner);
    const invocation = prepare(deps, image);
    const child = await start(deps, invocation, log);
    deps.event('Normal', 'Started', `Started container ${place.container.name}`);
    const exit = await watchOver(deps, child, log, tell, startedAtMs);
    invocation.cleanUp?.();
    const reason = exit.exitCode === 0 ? 'Completed' : 'Error';
    const message = exit.exitCode === 0 ? {} : { message: log.tail(5).join('\n') };
    const finishedAtMs = clock.now();
    return {
      kind: 'terminated',
      exitCode: exit.exitCode,
      reason,
      startedAtMs,
      finishedAtMs,
      ...message,
    };
  } catch (error) {
    const message = reasonOf(error);
    deps.event('Warning', 'Failed', `Error: ${message}`);
    const at = { startedAtMs, finishedAtMs: clock.now() };
    return {
      kind: 'terminated',
      exitCode: START_FAILED_EXIT_CODE,
      reason: 'StartError',
      message,
      ...at,
    };
  } finally {
    log?.close();
  }
}

function prepare({ place }: RunnerDeps, image: ImageAdapter): Invocation {
  const { container, env } = place;
  const expanded = {
    ...container,
    command: container.command.map((part) => expand(part, env)),
    args: container.args.map((part) => expand(part, env)),
  };
  return image.prepare({ ...place, container: expanded });
}

function start(deps: RunnerDeps, { command, args }: Invocation, log: LogFile): Promise<Child> {
  const { pod, container, env, owner, folder } = deps.place;
  return startChild(deps.child, {
    name: `${pod.metadata.namespace}/${pod.metadata.name}/${container.name}`,
    command,
    args,
    cwd: folder,
    env,
    output: log.fd,
    ...(owner === undefined ? {} : owner),
  });
}

/** Probes the process and bounds its log until it ends, or ends it when the pod does. */
async function watchOver(
  deps: RunnerDeps,
  child: Child,
  log: LogFile,
  tell: Tell,
  startedAtMs: number,
): Promise<Exit> {
  const life = new AbortController();
  const ended = AbortSignal.any([life.signal, deps.signal]);
  const stopOnAbort = () => void child.stop(deps.graceMs());
  for (const signal of [deps.signal, deps.nodeSignal]) {
    signal.addEventListener('abort', stopOnAbort, { once: true });
    if (signal.aborted) stopOnAbort();
  }
  const { readinessProbe, startupProbe } = deps.place.container;
  const started = startupProbe === undefined;
  const running: ContainerState = { kind: 'running', startedAtMs };
  tell({ state: running, started, ready: started && readinessProbe === undefined });
  const loops = [probe(deps, child, tell, ended), boundLog(deps.clock, log, ended)];
  try {
    return await child.exited;
  } finally {
    life.abort();
    for (const signal of [deps.signal, deps.nodeSignal]) {
      signal.removeEventListener('abort', stopOnAbort);
    }
    await Promise.all(loops);
  }
}

/** Startup first; readiness and liveness only after it. */
async function probe(
  deps: RunnerDeps,
  child: Child,
  tell: Tell,
  signal: AbortSignal,
): Promise<void> {
  const { container, ip } = deps.place;
  const { startupProbe, readinessProbe, livenessProbe } = container;
  const probing = { clock: deps.clock, attempt: networkAttempt(ip, container) };
  if (startupProbe !== undefined) {
    const startup = new AbortController();
    const until = AbortSignal.any([signal, startup.signal]);
    await probeLoop(probing, startupProbe, false, () => startup.abort(), until);
    if (signal.aborted) return;
    tell({ started: true, ready: readinessProbe === undefined });
  }
  const readiness =
    readinessProbe === undefined
      ? undefined
      : probeLoop(probing, readinessProbe, false, (ready) => tell({ ready }), signal);
  const onAlive = (alive: boolean) => {
    if (alive) return;
    deps.event('Warning', 'Unhealthy', `Liveness probe of ${container.name} failed`);
    void child.stop(deps.graceMs());
  };
  const liveness =
    livenessProbe === undefined
      ? undefined
      : probeLoop(probing, livenessProbe, true, onAlive, signal);
  await Promise.all([readiness, liveness]);
}
