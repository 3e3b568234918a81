/** The table of pods: the one whose cells need thought (`pkg/printers/internalversion`). */
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import {
  ageColumn,
  count,
  field,
  fieldObjects,
  fieldText,
  nameColumn,
  type TableColumn,
  textColumn,
} from './columns.ts';
import { humanDuration } from './human-duration.ts';

const NONE = '<none>';

export const podColumns: TableColumn[] = [
  nameColumn,
  textColumn('Ready', ready, 0, 'The aggregate readiness state of this pod for accepting traffic.'),
  textColumn('Status', podStatus, 0, 'The aggregate status of the containers in this pod.'),
  textColumn('Restarts', restarts, 0, 'The number of times the containers have been restarted.'),
  ageColumn,
  textColumn('IP', (pod) => podIp(pod) || NONE, 1, 'IP address of the pod.'),
  textColumn('Node', (pod) => fieldText(pod, 'spec', 'nodeName') || NONE, 1, 'Node of the pod.'),
  textColumn('Nominated Node', (pod) => fieldText(pod, 'status', 'nominatedNodeName') || NONE, 1),
  textColumn('Readiness Gates', readinessGates, 1),
];

function ready(pod: JsonObject): string {
  const statuses = fieldObjects(pod, 'status', 'containerStatuses');
  const running = statuses.filter(
    (status) => status.ready === true && field(status, 'state', 'running') !== undefined,
  );
  return `${running.length}/${count(field(pod, 'spec', 'containers'))}`;
}

function podStatus(pod: JsonObject): string {
  const deleting = fieldText(pod, 'metadata', 'deletionTimestamp') !== '';
  const reason = fieldText(pod, 'status', 'reason');
  const isOver = ['Failed', 'Succeeded'].includes(fieldText(pod, 'status', 'phase'));
  if (deleting && reason === 'NodeLost') return 'Unknown';
  if (deleting && !isOver) return 'Terminating';
  return initReason(pod) ?? containersReason(pod, reason || fieldText(pod, 'status', 'phase'));
}

/** While init containers run or fail, they are what the status tells. */
function initReason(pod: JsonObject): string | undefined {
  const statuses = fieldObjects(pod, 'status', 'initContainerStatuses');
  const total = count(field(pod, 'spec', 'initContainers'));
  for (const [index, status] of statuses.entries()) {
    const terminated = field(status, 'state', 'terminated');
    if (isJsonObject(terminated)) {
      if (terminated.exitCode === 0) continue;
      return `Init:${terminatedReason(terminated)}`;
    }
    const waiting = fieldText(status, 'state', 'waiting', 'reason');
    if (waiting !== '' && waiting !== 'PodInitializing') return `Init:${waiting}`;
    return `Init:${index}/${total}`;
  }
  return undefined;
}

function containersReason(pod: JsonObject, podReason: string): string {
  let reason = podReason;
  let hasRunning = false;
  for (const status of fieldObjects(pod, 'status', 'containerStatuses').reverse()) {
    const waiting = fieldText(status, 'state', 'waiting', 'reason');
    const terminated = field(status, 'state', 'terminated');
    if (waiting !== '') reason = waiting;
    else if (isJsonObject(terminated)) reason = terminatedReason(terminated);
    else if (status.ready === true && field(status, 'state', 'running') !== undefined) {
      hasRunning = true;
    }
  }
  if (reason !== 'Completed' || !hasRunning) return reason;
  return isReady(pod) ? 'Running' : 'NotReady';
}

function terminatedReason(terminated: JsonObject): string {
  const reason = fieldText(terminated, 'reason');
  if (reason !== '') return reason;
  const signal = terminated.signal;
  if (typeof signal === 'number' && signal !== 0) return `Signal:${signal}`;
  return `ExitCode:${terminated.exitCode ?? 0}`;
}

function restarts(pod: JsonObject, nowMs: number): string {
  const statuses = fieldObjects(pod, 'status', 'containerStatuses');
  const total = statuses.reduce((sum, status) => sum + numberOf(status.restartCount), 0);
  const finished = statuses
    .map((status) => Date.parse(fieldText(status, 'lastState', 'terminated', 'finishedAt')))
    .filter((time) => !Number.isNaN(time));
  if (total === 0 || finished.length === 0) return String(total);
  return `${total} (${humanDuration(nowMs - Math.max(...finished))} ago)`;
}

function podIp(pod: JsonObject): string {
  const [first] = fieldObjects(pod, 'status', 'podIPs');
  return first === undefined ? fieldText(pod, 'status', 'podIP') : fieldText(first, 'ip');
}

function readinessGates(pod: JsonObject): string {
  const gates = fieldObjects(pod, 'spec', 'readinessGates');
  if (gates.length === 0) return NONE;
  const trueTypes = new Set(
    fieldObjects(pod, 'status', 'conditions')
      .filter((condition) => condition.status === 'True')
      .map((condition) => condition.type),
  );
  const met = gates.filter((gate) => trueTypes.has(gate.conditionType ?? null));
  return `${met.length}/${gates.length}`;
}

function isReady(pod: JsonObject): boolean {
  return fieldObjects(pod, 'status', 'conditions').some(
    (condition) => condition.type === 'Ready' && condition.status === 'True',
  );
}

function numberOf(value: JsonValue | undefined): number {
  return typeof value === 'number' ? value : 0;
}
