/** The part of a history that shows a violation, a line for each operation. */
import { labelOf } from './check/answers.ts';
import type { Violation } from './check/violation.ts';
import type { AcquireOperation, Operation, SyncOperation } from './history.ts';

/** Operations that are shown of one violation: the first ones and the last ones. */
const LINES_MAX = 40;

/** The violated rule, and the operations that show it in the order of calls. */
export function excerptOf({ rule, message, evidence, uids }: Violation): string {
  const operations = [...new Set(evidence)].sort((a, b) => a.id - b.id);
  const lines = operations.map((operation) => `    ${lineOf(operation, uids)}`);
  const skipped = lines.length - LINES_MAX;
  if (skipped > 0) lines.splice(LINES_MAX >> 1, skipped, `    … ${skipped} more …`);
  return [`${rule}: ${message}`, ...lines].join('\n');
}

function lineOf(operation: Operation, uids: readonly string[] | undefined): string {
  const { calledMs, endMs, who } = operation;
  const span = `${seconds(calledMs)}–${seconds(endMs)}`.padEnd(17);
  return `${span} ${who.padEnd(9)} ${askedBy(operation, uids)} → ${answerTo(operation)}`;
}

function askedBy(operation: Operation, uids: readonly string[] | undefined): string {
  switch (operation.kind) {
    case 'acquire':
      return acquire(operation);
    case 'renew':
      return `renew ${operation.leaseID} for ${operation.ttlSeconds} s`;
    case 'report': {
      const { result, target, retryAfterSeconds } = operation.report;
      const about = target === undefined ? '' : ` by ${target}`;
      const again = retryAfterSeconds === undefined ? '' : `, again after ${retryAfterSeconds} s`;
      return `report ${operation.leaseID} ${result}${about}${again}`;
    }
    case 'sync':
      return sync(operation, uids);
    default:
      return `${operation.kind} ${operation.leaseID}`;
  }
}

function acquire({ key, request }: AcquireOperation): string {
  const parts = Object.entries(request).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  if (key !== undefined) parts.unshift(`key ${key}`);
  return `acquire ${parts.join(' ')}`;
}

/** A sync as far as it is about these proxies. */
function sync({ label, writes }: SyncOperation, uids: readonly string[] | undefined): string {
  const shown = writes
    .filter(({ uid }) => uids === undefined || uids.includes(uid))
    .map(({ uid, version }) => {
      if (version === null) return `${uid} removed`;
      const { attributes, egressIP, healthy, leasable, draining, maxLeases, port, instance } =
        version.entry;
      const state = [
        healthy === true ? 'healthy' : 'not healthy',
        ...(leasable ? [] : ['cordoned']),
        ...(draining ? ['draining'] : []),
      ].join(' ');
      const where = `${instance}:${port} behind ${egressIP ?? 'what was seen before'}`;
      return `${uid} ${state} max ${maxLeases} ${where} ${JSON.stringify(attributes)}`;
    });
  return `sync ${label} { ${shown.join('; ')} }`;
}

function answerTo(operation: Operation): string {
  const { outcome } = operation;
  if (outcome.kind === 'lost') return `no answer (${outcome.why})`;
  const label = labelOf(outcome);
  if (operation.kind === 'sync') {
    return operation.active === undefined ? label : `${label} ${JSON.stringify(operation.active)}`;
  }
  const { lease } = outcome;
  if (lease === undefined) return label;
  const { leaseID, token, proxy, expiresMs } = lease;
  const where = `${proxy.host}:${proxy.port} behind ${proxy.egressIP ?? 'nothing known'}`;
  return `${label} ${leaseID} token ${token}, ${where}, until ${seconds(expiresMs)}`;
}

function seconds(ms: number): string {
  return Number.isFinite(ms) ? (ms / 1000).toFixed(3) : 'ever';
}
