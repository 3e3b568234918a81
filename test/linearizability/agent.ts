/**
 * The agent of one cluster: one sync after the other, with what has changed since, until the run is
 * over. What it gets no answer to it sends again, or it begins a new session with all that is true.
 */
import { systemClock as clock, type Random } from '#shared/clock.ts';
import { type SyncRequest, syncResponseSchema } from '#shared/wire/sync.ts';
import { between } from '#test/integration/seed.ts';
import { refusalOf } from './calls.ts';
import type { Connection } from './connection.ts';
import type { Fleet } from './fleet.ts';
import type { Outcome, SyncOperation, Write } from './history.ts';
import type { Recorder } from './recorder.ts';

const PAUSE_MS_MAX = 150;
const RETRY_MS = 40;
/** Changes of one delta, at most. */
const CHANGES_MAX = 3;

export interface AgentOptions {
  readonly cluster: string;
  readonly fleet: Fleet;
  readonly random: Random;
  readonly connection: Connection;
  readonly recorder: Recorder;
  readonly token: string;
  /** The run is over. */
  readonly signal: AbortSignal;
  /** The first full sync was taken. */
  readonly onReady: () => void;
}

interface Planned {
  readonly request: Omit<SyncRequest, 'term' | 'session' | 'seq'>;
  readonly writes: readonly Write[];
}

/** Syncs until the signal. */
export async function runAgent(options: AgentOptions): Promise<void> {
  const { fleet, random, signal } = options;
  let term = 1;
  let sessions = 1;
  let seq = 0;
  /** `seq` of the last sync of this session that was taken and carried changes; 0 for none. */
  let basis = 0;
  let needsFull = true;

  /** Sends it until there is an answer; false when it has to be a full sync of another session. */
  async function deliver({ request, writes }: Planned): Promise<boolean> {
    const session = `session-${sessions}`;
    seq++;
    const based = request.kind !== 'full' && basis > 0 && random() < 0.9 ? { basis } : {};
    const whole = { ...request, ...based, term, session, seq };
    for (;;) {
      const outcome = await send(options, whole, writes);
      if (outcome?.kind === 'answered' && outcome.status === 200) {
        if (request.kind !== 'heartbeat') basis = seq;
        return true;
      }
      if (outcome?.kind === 'answered' && outcome.status < 500) return false;
      if (signal.aborted) return true;
      await clock.sleep(RETRY_MS);
      if (outcome !== undefined && random() < 0.3) {
        beginSession();
        return false;
      }
    }
  }

  function beginSession(): void {
    sessions++;
    seq = 0;
    basis = 0;
    if (random() < 0.5) term++;
  }

  while (!signal.aborted) {
    if (!needsFull && random() < 0.03) {
      beginSession();
      needsFull = true;
    }
    const plans = needsFull ? fullSync(fleet, random) : [nextSync(fleet, random)].flat();
    let isTaken = true;
    for (const plan of plans) {
      isTaken &&= await deliver(plan);
    }
    if (isTaken && needsFull) options.onReady();
    needsFull = !isTaken;
    if (isTaken) await clock.sleep(between(random, 0, PAUSE_MS_MAX));
  }
}

function nextSync(fleet: Fleet, random: Random): Planned | Planned[] {
  const roll = random();
  if (roll < 0.1) return fullSync(fleet, random);
  if (roll < 0.35) return { request: { kind: 'heartbeat', upserts: [], removes: [] }, writes: [] };
  const writes: Write[] = [];
  for (let changes = between(random, 1, CHANGES_MAX); changes > 0; changes--) {
    // A delta first removes and then enters: what does not fit into that order has to wait.
    const known = new Set(writes.map(({ uid }) => uid));
    const change = fleet.change();
    if (change.some(({ uid }) => known.has(uid))) {
      return [delta(writes), delta(change)];
    }
    writes.push(...change);
  }
  return delta(writes);
}

function delta(writes: readonly Write[]): Planned {
  const removes = writes.filter(({ version }) => version === null).map(({ uid }) => uid);
  const upserts = writes.flatMap(({ version }) => version?.entry ?? []);
  return { request: { kind: 'delta', upserts, removes }, writes };
}

/** All that is true, in one page or two; it takes effect with the last. */
function fullSync(fleet: Fleet, random: Random): Planned[] {
  const upserts = fleet.versions.map(({ entry }) => entry);
  const writes = fleet.everything;
  if (random() < 0.8) return [{ request: { kind: 'full', upserts, removes: [] }, writes }];
  const half = upserts.length >> 1;
  return [upserts.slice(0, half), upserts.slice(half)].map((part, index) => ({
    request: { kind: 'full', page: { index, of: 2 }, upserts: part, removes: [] },
    writes: index === 0 ? [] : writes,
  }));
}

/** One attempt; undefined when nobody listened. */
async function send(
  { cluster, connection, recorder, token }: AgentOptions,
  request: SyncRequest,
  writes: readonly Write[],
): Promise<Outcome | undefined> {
  const { kind, seq, session, page } = request;
  const begun = recorder.begin();
  const reply = await connection.send({
    method: 'POST',
    path: `/v1/agents/${cluster}/sync`,
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify(request),
  });
  if (reply.kind === 'unreached') return undefined;
  const part = page === undefined ? '' : ` page ${page.index + 1} of ${page.of}`;
  const note = { kind: 'sync', who: cluster, cluster, writes } as const;
  const label = `${kind}${part} ${session}/${seq}`;
  if (reply.kind === 'lost') {
    const outcome = { kind: 'lost', why: 'broken' } as const;
    recorder.end(begun, { ...note, label, outcome });
    return outcome;
  }
  const { status, hasRetryAfter, body } = reply;
  const answer = { kind: 'answered', status, hasRetryAfter } as const;
  if (status !== 200) {
    const outcome = { ...answer, ...refusalOf(body) };
    recorder.end(begun, { ...note, label, outcome });
    return outcome;
  }
  const response = syncResponseSchema.safeParse(body);
  const told = response.success ? toldBy(response.data, recorder) : {};
  const outcome = response.success ? answer : { ...answer, malformed: response.error.message };
  recorder.end(begun, { ...note, ...told, label, outcome });
  return outcome;
}

function toldBy(
  { leases, partial, serverTime }: ReturnType<typeof syncResponseSchema.parse>,
  recorder: Recorder,
): Pick<SyncOperation, 'active' | 'partial' | 'serverMs'> {
  return { active: leases, partial, serverMs: recorder.toRunMs(serverTime) };
}
