/** What processes have used so far, as Linux counts it under `/proc`. */
import { readdirSync, readFileSync } from 'node:fs';

/** Ticks per second in which Linux gives times to programs, on every machine that Node runs on. */
const TICKS_PER_SECOND = 100;
const KIB = 1024;

export interface Stat {
  readonly pid: number;
  readonly parent: number;
  /** User and system time of all its threads. */
  readonly cpuMs: number;
}

/** Parses `/proc/<pid>/stat`, where the name may hold spaces and brackets of its own. */
export function parseStat(text: string): Stat {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [parent = NaN, user = NaN, system = NaN] = [1, 11, 12].map((at) => Number(fields[at]));
  if (Number.isNaN(parent + user + system)) throw new Error(`no process status: ${text}`);
  const cpuMs = ((user + system) * 1000) / TICKS_PER_SECOND;
  return { pid: Number.parseInt(text, 10), parent, cpuMs };
}

/** Time that these processes and their living descendants have used. */
export function cpuMsOf(pids: readonly number[]): number {
  return family(pids).reduce((sum, { cpuMs }) => sum + cpuMs, 0);
}

/** Resident memory of one process. */
export function residentBytes(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * KIB;
}

function family(pids: readonly number[]): Stat[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statOf(name));
  const members = new Set(pids);
  // A child may be listed before its parent, as numbers are used again.
  for (let size = 0; size < members.size; ) {
    size = members.size;
    for (const { pid, parent } of all) if (members.has(parent)) members.add(pid);
  }
  return all.filter(({ pid }) => members.has(pid));
}

function statOf(pid: string): Stat[] {
  try {
    return [parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))];
  } catch {
    return []; // It has ended since the folder was read.
  }
}
