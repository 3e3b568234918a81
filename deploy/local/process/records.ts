/**
 * The processes of a stack, on disk, so that the next start can end what a killed one left. An
 * entry is written right after the start of a process and removed after its end.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import { isRunning, markedProcesses, type ProcessIdentity } from './identity.ts';
import { killAll } from './kill.ts';

const recordSchema = z.object({
  /** Start ticks count from boot, so a record of an earlier boot proves nothing. */
  bootId: z.string(),
  processes: z.array(z.object({ name: z.string(), pid: z.number(), startTicks: z.string() })),
});

export interface ProcessRecords {
  add(name: string, identity: ProcessIdentity): void;
  remove(identity: ProcessIdentity): void;
}

/** Opens the records in `file`, forgetting what an earlier start wrote. */
export function createProcessRecords(file: string): ProcessRecords {
  const processes = new Map<number, { name: string; pid: number; startTicks: string }>();
  const bootId = readBootId();
  const save = () => {
    const record = { bootId, processes: [...processes.values()] };
    writeFileSync(file, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  };
  save();
  return {
    add(name, identity) {
      processes.set(identity.pid, { name, ...identity });
      save();
    },
    remove(identity) {
      if (processes.get(identity.pid)?.startTicks !== identity.startTicks) return;
      processes.delete(identity.pid);
      save();
    },
  };
}

/**
 * Ends every process that an earlier start on the same state directory left: those recorded
 * whose start time is the recorded one, and those that carry the stack's marker. Returns how many.
 */
export function endLeftovers(clock: Clock, file: string, stackId: string): Promise<number> {
  return killAll(clock, () => [...recorded(file), ...markedProcesses(stackId)]);
}

function recorded(file: string): ProcessIdentity[] {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return [];
  }
  const parsed = recordSchema.safeParse(content);
  if (!parsed.success || parsed.data.bootId !== readBootId()) return [];
  return parsed.data.processes.filter(isRunning);
}

function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}
