/** The status of a pod as a kubelet would report it, from the states of its containers. */
import type { JsonObject } from '../control-plane/json.ts';
import type { Pod, RestartPolicy } from './pod.ts';

export type ContainerState =
  | { readonly kind: 'waiting'; readonly reason: string; readonly message?: string }
  | { readonly kind: 'running'; readonly startedAtMs: number }
  | Terminated;

export interface Terminated {
  readonly kind: 'terminated';
  readonly exitCode: number;
  readonly reason: string;
  readonly message?: string;
  readonly startedAtMs: number;
  readonly finishedAtMs: number;
}

export interface ContainerReport {
  readonly name: string;
  readonly image: string;
  readonly state: ContainerState;
  readonly last?: Terminated;
  readonly restartCount: number;
  /** Its readiness probe succeeds, or it has none and runs. */
  readonly ready: boolean;
  /** Its startup probe succeeded, or it has none and runs. */
  readonly started: boolean;
}

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

/** A type and not an interface, which would be no JSON object. */
export type PodCondition = {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly lastTransitionTime: string;
  readonly reason?: string;
  readonly message?: string;
};

export interface PodFacts {
  readonly pod: Pod;
  readonly hostIP: string;
  /** Unset until the pod has an address. */
  readonly ip?: string;
  readonly startTime: string;
  readonly containers: readonly ContainerReport[];
  /** What was reported last: a condition keeps its time while its status stays. */
  readonly conditions: readonly PodCondition[];
  readonly nowMs: number;
}

/** Whether a container that ended so is started again. */
export function restarts(policy: RestartPolicy, exitCode: number): boolean {
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

/** Phase by the rules of `PodStatus.phase`. */
export function podPhase(policy: RestartPolicy, containers: readonly ContainerReport[]): PodPhase {
  const ended = containers.every(
    ({ state }) => state.kind === 'terminated' && !restarts(policy, state.exitCode),
  );
  if (ended) {
    const failed = containers.some(
      ({ state }) => state.kind === 'terminated' && state.exitCode !== 0,
    );
    return failed ? 'Failed' : 'Succeeded';
  }
  const begun = ({ state, last }: ContainerReport) =>
    state.kind !== 'waiting' || last !== undefined;
  return containers.every(begun) ? 'Running' : 'Pending';
}

/** The whole status, ready to be written. */
export function podStatus(facts: PodFacts): JsonObject & { conditions: PodCondition[] } {
  const phase = podPhase(facts.pod.spec.restartPolicy, facts.containers);
  return {
    phase,
    hostIP: facts.hostIP,
    hostIPs: [{ ip: facts.hostIP }],
    ...(facts.ip === undefined ? {} : { podIP: facts.ip, podIPs: [{ ip: facts.ip }] }),
    startTime: facts.startTime,
    conditions: podConditions(facts, phase),
    containerStatuses: facts.containers.map(containerStatus),
  };
}

/** The four conditions that every kubelet reports. */
function podConditions(facts: PodFacts, phase: PodPhase): PodCondition[] {
  const unready = facts.containers.filter((container) => !container.ready);
  const names = unready.map((container) => container.name).join(' ');
  const ended = phase === 'Succeeded' || phase === 'Failed';
  const notReady = ended
    ? { reason: phase === 'Succeeded' ? 'PodCompleted' : 'PodFailed' }
    : { reason: 'ContainersNotReady', message: `containers with unready status: [${names}]` };
  const ready = unready.length === 0 ? {} : notReady;
  const status = unready.length === 0 ? 'True' : 'False';
  return [
    condition(facts, 'PodScheduled', 'True', {}),
    condition(facts, 'Initialized', 'True', {}),
    condition(facts, 'ContainersReady', status, ready),
    condition(facts, 'Ready', status, ready),
  ];
}

function condition(
  facts: PodFacts,
  type: string,
  status: PodCondition['status'],
  why: { reason?: string; message?: string },
): PodCondition {
  const last = facts.conditions.find((one) => one.type === type);
  const unchanged = last !== undefined && last.status === status;
  const lastTransitionTime = unchanged ? last.lastTransitionTime : kubeTime(facts.nowMs);
  return { type, status, lastTransitionTime, ...why };
}

function containerStatus(container: ContainerReport): JsonObject {
  const { name, image, ready, started, restartCount, state, last } = container;
  return {
    name,
    image,
    imageID: '',
    ready,
    started,
    restartCount,
    state: stateJson(state),
    lastState: last === undefined ? {} : stateJson(last),
  };
}

function stateJson(state: ContainerState): JsonObject {
  switch (state.kind) {
    case 'waiting':
      return { waiting: { reason: state.reason, ...message(state) } };
    case 'running':
      return { running: { startedAt: kubeTime(state.startedAtMs) } };
    case 'terminated':
      return {
        terminated: {
          exitCode: state.exitCode,
          reason: state.reason,
          startedAt: kubeTime(state.startedAtMs),
          finishedAt: kubeTime(state.finishedAtMs),
          ...message(state),
        },
      };
  }
}

function message(state: { message?: string }): JsonObject {
  return state.message === undefined ? {} : { message: state.message };
}

/** Kubernetes' times of status fields have whole seconds. */
export function kubeTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
