/** The one answer to an agent, of the answers that the shards gave to their parts of its sync. */
import type { SyncResponse } from '#shared/wire/sync.ts';
import { sumRecords } from './sums.ts';

type Reports = SyncResponse['reports'][string];

/** `partial`: not every shard was asked, so the answer tells only of some proxies. */
export function mergeResponses(
  first: SyncResponse,
  others: readonly SyncResponse[],
  partial: boolean,
): SyncResponse {
  const all = [first, ...others];
  const { acceptedSeq, serverTime } = first;
  return {
    acceptedSeq,
    serverTime,
    ...(partial ? { partial } : {}),
    leases: sumRecords(all.map(({ leases }) => leases)),
    reports: uniteReports(all),
    counters: partial ? {} : sumRecords(all.map(({ counters }) => counters)),
  };
}

/** Reports by UID; after a change of the number of shards two may have some of one proxy. */
function uniteReports(responses: readonly SyncResponse[]): SyncResponse['reports'] {
  const united = new Map<string, Reports>();
  for (const { reports } of responses) {
    for (const [uid, more] of Object.entries(reports)) {
      const known = united.get(uid);
      united.set(uid, known === undefined ? more : addReports(known, more));
    }
  }
  return Object.fromEntries(united);
}

function addReports(a: Reports, b: Reports): Reports {
  return {
    rate_limited: a.rate_limited + b.rate_limited,
    banned: a.banned + b.banned,
    targets: [...new Set([...a.targets, ...b.targets])],
  };
}
