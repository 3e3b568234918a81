/**
 * What was reported rests: after the answer to a `banned` or `rate_limited` no proxy behind that
 * egress is granted for that target, until the shortest time that the cooldown can have. Where
 * several shards share an egress, the others have a second to hear of it.
 */
import {
  isUnknown,
  type Operation,
  type ReportOperation,
  type Span,
  succeeded,
} from '../history.ts';
import type { Digest, Story } from './story.ts';
import type { Finding, Violation } from './violation.ts';

const SHARDS_HEAR_MS = 1_000;
/** Stands for all targets. */
const EVERY_TARGET = '';

interface Rest {
  /** An address, or a machine whose address nobody ever knew. */
  readonly egress: string;
  readonly target: string;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly story: Story;
  readonly reports: readonly ReportOperation[];
}

export function checkCooldowns(digest: Digest): Finding {
  const rests = [...digest.stories.values()].flatMap((story) => restsOf(digest, story));
  const grants = grantsByEgress(digest.stories.values());
  const violations: Violation[] = [];
  let ofSeveral = 0;
  for (const rest of rests) {
    const { egress, target, fromMs, untilMs } = rest;
    const here = grants.get(egress) ?? [];
    if (new Set(here.map(({ machine }) => machine.uid)).size > 1) ofSeveral++;
    const broken = here.find(
      ({ grant, lease }) =>
        grant.calledMs > fromMs &&
        grant.endMs < untilMs &&
        (target === EVERY_TARGET || target === lease.target),
    );
    if (broken === undefined) continue;
    const seconds = ((untilMs - broken.grant.endMs) / 1000).toFixed(3);
    violations.push({
      rule: 'cooldown',
      message:
        `granted ${broken.machine.uid} behind ${egress} for ${broken.lease.target ?? 'no target'}, ` +
        `which rests for ${seconds} s more`,
      evidence: [
        ...rest.story.answered,
        ...rest.reports,
        ...syncsOf(digest, rest.story, rest.reports),
        ...broken.answered,
        ...syncsOf(digest, broken, [broken.grant]),
      ],
      uids: [rest.story.machine.uid, broken.machine.uid],
    });
  }
  return {
    violations,
    facts: {
      'cooldowns that are certain': rests.length,
      'of them on addresses of several proxies': ofSeveral,
    },
  };
}

/** Reports of one lease and target count once: which did is open, so the shortest counts here. */
function restsOf({ history, inventory }: Digest, story: Story): Rest[] {
  const { maxCooldownMs, slackMs, shards } = history;
  const offences = story.operations
    .filter((operation) => operation.kind === 'report')
    .filter((operation) => operation.report.result !== 'ok' && mayHaveHappened(operation));
  const byTarget = Map.groupBy(
    offences,
    ({ report }) => report.target ?? story.lease.target ?? EVERY_TARGET,
  );
  return [...byTarget].flatMap(([target, reports]) => {
    const answered = reports.filter(succeeded);
    const span = {
      calledMs: Math.min(...reports.map(({ calledMs }) => calledMs)),
      endMs: Math.min(...answered.map(({ endMs }) => endMs)),
    };
    if (answered.length === 0) return [];
    const lengths = reports.map(({ report }) => lengthMs(report, history.cooldownMs));
    const fromMs = span.endMs + (shards === 1 ? 0 : SHARDS_HEAR_MS);
    const untilMs = span.calledMs + Math.min(maxCooldownMs, ...lengths) - slackMs;
    const egress = egressOf(inventory, story, span);
    if (egress === undefined || untilMs <= fromMs) return [];
    return [{ egress, target, fromMs, untilMs, story, reports }];
  });
}

function mayHaveHappened(operation: Operation): boolean {
  return succeeded(operation) || isUnknown(operation);
}

function lengthMs(
  { result, retryAfterSeconds }: ReportOperation['report'],
  cooldownMs: number,
): number {
  const isSet = result === 'rate_limited' && retryAfterSeconds !== undefined;
  return isSet ? retryAfterSeconds * 1000 : cooldownMs;
}

/**
 * The egress that the ledger certainly knew of the lease's machine: it is the same in all that may
 * have been declared of the machine since the grant, or while the report was made.
 */
function egressOf(
  inventory: Digest['inventory'],
  { machine, grant }: Story,
  report: Span,
): string | undefined {
  const own = (calledMs: number) =>
    inventory
      .possible(machine.uid, { calledMs, endMs: report.endMs })
      .filter((version) => version?.entry.instance === machine.instance)
      .map((version) => version?.entry.egressIP);
  const isThere = inventory
    .possible(machine.uid, report)
    .every((version) => version?.entry.instance === machine.instance);
  for (const addresses of [own(grant.calledMs), isThere ? own(report.calledMs) : []]) {
    const [address, ...others] = new Set(addresses);
    if (address !== undefined && others.length === 0) return address;
  }
  const ever = own(Number.NEGATIVE_INFINITY);
  return ever.length > 0 && ever.every((address) => address === undefined)
    ? machine.instance
    : undefined;
}

/** What may have been declared of the story's proxy by then. */
function syncsOf({ inventory }: Digest, { machine }: Story, spans: readonly Span[]): Operation[] {
  return spans.flatMap((span) =>
    inventory.possibleWrites(machine.uid, span).flatMap((write) => write?.sync ?? []),
  );
}

/** Grants by the address that their answer shows, and by their machine. */
function grantsByEgress(stories: Iterable<Story>): Map<string, Story[]> {
  const grants = new Map<string, Story[]>();
  const add = (egress: string, story: Story) => {
    const known = grants.get(egress);
    if (known === undefined) grants.set(egress, [story]);
    else known.push(story);
  };
  for (const story of stories) {
    add(story.machine.instance, story);
    // The answer to a repetition may show an address that came after the grant.
    const { egressIP } = story.lease.proxy;
    const isFirst = story.answered.length + story.lost.length === 1;
    if (egressIP !== undefined && isFirst) add(egressIP, story);
  }
  return grants;
}
