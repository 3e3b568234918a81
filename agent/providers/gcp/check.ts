/** Check of the gcp provider: the verb and scope of `listByTag`, one instance at most. */
import { failedCheck } from '../failed-check.ts';
import type { TargetStatus } from '../provider.ts';
import { classOf } from './classify.ts';
import { type ComputeApi, ComputeError } from './compute-api.ts';
import { MARK_FILTER } from './labels.ts';
import { unreadOf } from './list.ts';
import type { RegionResource } from './resources.ts';

/** What proxies use up, in the order in which it usually runs out. */
const METRICS = ['IN_USE_ADDRESSES', 'CPUS', 'INSTANCES'] as const;
/** Details are for people: regions beyond that, the emptiest ones, are left out. */
const REGIONS_MAX = 10;

/** One entry, the project, whatever happens; prompt once `signal` aborts. */
export async function checkProject(
  api: ComputeApi,
  project: string,
  signal: AbortSignal,
): Promise<TargetStatus[]> {
  try {
    const page = await api.listInstances({ filter: MARK_FILTER, maxResults: 1 }, signal);
    const unread = unreadOf(page);
    const message =
      unread.length === 0
        ? 'instances can be listed'
        : `instances can be listed, except those of ${unread.join(', ')}`;
    const details = await headroom(api, signal);
    return [{ name: project, ready: true, reason: 'Reachable', message, ...details }];
  } catch (error) {
    return [{ name: project, ...failedCheck(error, signal, reasonOf) }];
  }
}

function reasonOf(error: unknown): string {
  const status = error instanceof ComputeError ? error.status : undefined;
  if (status === 401 || /default credentials/i.test(String(error))) return 'Unauthorized';
  // A 403 speaks of quotas, too.
  if (status === 403) return classOf(error) === 'Permanent' ? 'Forbidden' : 'APIError';
  return status === undefined ? 'Unreachable' : 'APIError';
}

/** Useful when triaging, and not worth a failure. */
async function headroom(
  api: ComputeApi,
  signal: AbortSignal,
): Promise<Pick<TargetStatus, 'details'>> {
  try {
    const details = headroomOf(await api.listRegions(signal));
    return Object.keys(details).length === 0 ? {} : { details };
  } catch {
    return {};
  }
}

/** `europe-west1 IN_USE_ADDRESSES: 3 of 8 in use`, for regions in which something is. */
export function headroomOf(regions: readonly RegionResource[]): Record<string, string> {
  const used = regions
    .map(({ name, quotas }) => ({ name, quotas, share: Math.max(0, ...quotas.map(shareOf)) }))
    .filter(({ share }) => share > 0)
    .sort((a, b) => b.share - a.share || (a.name < b.name ? -1 : 1))
    .slice(0, REGIONS_MAX);
  const details: Record<string, string> = {};
  for (const { name, quotas } of used) {
    for (const metric of METRICS) {
      const quota = quotas.find((one) => one.metric === metric);
      if (quota === undefined) continue;
      details[`${name} ${metric}`] = `${quota.usage} of ${quota.limit} in use`;
    }
  }
  return details;
}

function shareOf({ metric, usage, limit }: RegionResource['quotas'][number]): number {
  const counts = METRICS.some((one) => one === metric);
  return counts && limit > 0 ? usage / limit : 0;
}
