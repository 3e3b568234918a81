/**
 * Which process is which. A pid alone proves nothing, because pids are used again; a process is
 * ours when its start time is the recorded one, or when its environment carries our marker.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** Every process of a stack has this variable; the value is the stack's own random id. */
export const MARKER = 'EGRESS_LOCAL_STACK';

export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in clock ticks since boot, as the kernel prints it. */
  readonly startTicks: string;
}

interface Stat {
  readonly group: number;
  readonly startTicks: string;
}

/** Identity of a running process; undefined when there is none, or only its zombie. */
export function identify(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid);
  return stat === undefined ? undefined : { pid, startTicks: stat.startTicks };
}

/** Whether that very process still runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  return readStat(identity.pid)?.startTicks === identity.startTicks;
}

/** Processes whose environment carries the marker with `value`; never this process itself. */
export function markedProcesses(value: string): ProcessIdentity[] {
  return processIds().flatMap((pid) => {
    const identity = hasMarker(pid, value) ? identify(pid) : undefined;
    return identity === undefined ? [] : [identity];
  });
}

/** Processes of the group `group` that carry the marker: what a dead leader left behind. */
export function markedGroup(group: number, value: string): ProcessIdentity[] {
  return processIds().flatMap((pid) => {
    const stat = readStat(pid);
    if (stat === undefined || stat.group !== group || !hasMarker(pid, value)) return [];
    return [{ pid, startTicks: stat.startTicks }];
  });
}

function hasMarker(pid: number, value: string): boolean {
  return read(`/proc/${pid}/environ`)?.split('\0').includes(`${MARKER}=${value}`) ?? false;
}

function processIds(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid);
}

/** The command in the second field may hold spaces and brackets: count from its last bracket. */
function readStat(pid: number): Stat | undefined {
  const line = read(`/proc/${pid}/stat`);
  const fields = line?.slice(line.lastIndexOf(')') + 2).split(' ');
  const [state, , group] = fields ?? [];
  const startTicks = fields?.[19];
  if (state === undefined || group === undefined || startTicks === undefined) return undefined;
  if (state === 'Z' || state === 'X') return undefined;
  return { group: Number(group), startTicks };
}

/** undefined when the process is gone or belongs to somebody else. */
function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
