/** `kubectl logs`: what a pod's process wrote, from its end backwards and on as it grows. */
import { open } from 'node:fs/promises';
import type { Clock } from '#shared/clock.ts';
import { nameOf, objectAt, stringAt } from '../api/object-meta.ts';
import { badRequest } from '../api/status-error.ts';
import { type JsonObject, objects } from '../json.ts';
import { drained } from './drained.ts';
import type { Exchange } from './exchange.ts';
import { isTrue } from './request-info.ts';
import { COMMON_HEADERS } from './response.ts';

/** The last part of a longer log is sent. */
const LOG_BYTES_MAX = 4 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;
const FOLLOW_INTERVAL_MS = 500;
const NEWLINE = 0x0a;

/**
 * Sends the log; with `follow=true` also what is added, until the pod is over.
 *
 * @param path where the log is, once there is one
 * @param isRunning whether more may come; throws when the pod is gone
 */
export async function sendPodLog(
  { response, url, signal }: Exchange,
  clock: Clock,
  path: () => string | undefined,
  isRunning: () => boolean,
): Promise<void> {
  const lines = tailLines(url.searchParams);
  const isFollowing = isTrue(url.searchParams.get('follow'));
  response.writeHead(200, { ...COMMON_HEADERS, 'content-type': 'text/plain' });
  response.flushHeaders();
  let offset = await startOf(path(), lines);
  while (!signal.aborted) {
    const isLast = !isFollowing || !mayGrow(isRunning);
    for await (const chunk of contentFrom(path(), offset)) {
      offset += chunk.length;
      if (!response.write(chunk) && !(await drained(response, signal))) break;
    }
    if (isLast) break;
    await clock.sleep(FOLLOW_INTERVAL_MS, signal).catch(() => undefined);
  }
  response.end();
}

/** Refuses the log of a container that the pod does not have, and that of an earlier run. */
export function assertLogged(pod: JsonObject, query: URLSearchParams): void {
  const containers = objects(objectAt(pod, 'spec').containers).map((one) => stringAt(one, 'name'));
  const container = query.get('container') || (containers[0] ?? '');
  if (!containers.includes(container)) {
    throw badRequest(`container ${container} is not valid for pod ${nameOf(pod)}`);
  }
  // All runs of a container write into one log: there is no earlier one to tell apart.
  if (isTrue(query.get('previous'))) {
    throw badRequest(
      `previous terminated container "${container}" in pod "${nameOf(pod)}" not found`,
    );
  }
}

function tailLines(query: URLSearchParams): number | undefined {
  const text = query.get('tailLines');
  if (text === null || text === '' || text === '-1') return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw badRequest(`tailLines: "${text}" is not a whole number`);
}

function mayGrow(isRunning: () => boolean): boolean {
  try {
    return isRunning();
  } catch {
    return false;
  }
}

/** Where the last `lines` lines begin, but never more than the bound before the end. */
async function startOf(path: string | undefined, lines: number | undefined): Promise<number> {
  const file = path === undefined ? undefined : await open(path).catch(() => undefined);
  if (file === undefined) return 0;
  try {
    const { size } = await file.stat();
    const start = Math.max(0, size - LOG_BYTES_MAX);
    if (lines === undefined) return start;
    const { buffer, bytesRead } = await file.read(
      Buffer.alloc(size - start),
      0,
      size - start,
      start,
    );
    return start + tailOffset(buffer.subarray(0, bytesRead), lines);
  } finally {
    await file.close();
  }
}

function tailOffset(bytes: Buffer, lines: number): number {
  if (lines === 0) return bytes.length;
  let end = bytes.length - 1;
  for (let left = lines; left > 0; left--) {
    end = end <= 0 ? -1 : bytes.lastIndexOf(NEWLINE, end - 1);
    if (end < 0) return 0;
  }
  return end + 1;
}

async function* contentFrom(path: string | undefined, offset: number): AsyncGenerator<Buffer> {
  const file = path === undefined ? undefined : await open(path).catch(() => undefined);
  if (file === undefined) return;
  try {
    let position = offset;
    for (;;) {
      const { buffer, bytesRead } = await file.read(
        Buffer.alloc(CHUNK_BYTES),
        0,
        CHUNK_BYTES,
        position,
      );
      if (bytesRead === 0) return;
      position += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}
