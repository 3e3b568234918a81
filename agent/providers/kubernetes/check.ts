/** Check of the kubernetes provider: the same verb and scope as `listByTag`, one object at most. */

import { z } from 'zod';
import type { KubeClient } from '#agent/kube/client.ts';
import { KubeError, type KubeErrorReason } from '#agent/kube/errors.ts';
import { PODS, resourcePath } from '#agent/kube/resource.ts';
import { MANAGED_LABEL } from '#shared/crd/names.ts';
import { failedCheck } from '../failed-check.ts';
import type { TargetStatus } from '../provider.ts';

const TARGET = 'apiserver';

const REASONS: Partial<Record<KubeErrorReason, string>> = {
  Unreachable: 'Unreachable',
  Unauthorized: 'Unauthorized',
  Forbidden: 'Forbidden',
};

const versionSchema = z.object({ gitVersion: z.string() });

/** One entry, whatever happens; prompt once `signal` aborts. */
export async function checkApiServer(
  client: KubeClient,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<TargetStatus[]> {
  const path = resourcePath(PODS, namespace === undefined ? {} : { namespace });
  const query = { labelSelector: `${MANAGED_LABEL}=true`, limit: 1 };
  try {
    await client.request({ path, query }, signal);
  } catch (error) {
    return [{ name: TARGET, ...failedCheck(error, signal, reasonOf) }];
  }
  const message = 'pods can be listed';
  const details = await serverVersion(client, signal);
  return [{ name: TARGET, ready: true, reason: 'Reachable', message, ...details }];
}

function reasonOf(error: unknown): string {
  const reason = error instanceof KubeError ? REASONS[error.reason] : undefined;
  return reason ?? 'APIError';
}

/** Useful when triaging, and not worth a failure. */
async function serverVersion(
  client: KubeClient,
  signal: AbortSignal,
): Promise<Pick<TargetStatus, 'details'>> {
  try {
    const version = versionSchema.parse(await client.request({ path: '/version' }, signal));
    return { details: { version: version.gitVersion } };
  } catch {
    return {};
  }
}
