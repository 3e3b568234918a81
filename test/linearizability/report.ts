/** What a run showed: answers by kind, how much was certain enough to be judged, what was wrong. */
import { labelOf } from './check/answers.ts';
import { check } from './check/check.ts';
import { RULES, type Rule } from './check/violation.ts';
import { excerptOf } from './excerpt.ts';
import { answerOf, type History, type Operation } from './history.ts';
import { type RunOptions, record } from './live.ts';

/** Violations of one rule that are shown: the first tell what there is to know. */
const SHOWN_MAX = 3;

export interface Report {
  readonly seed: number;
  readonly shards: number;
  readonly seconds: number;
  /** Operations of clients that were answered, and those whose fate nobody knows. */
  readonly answered: number;
  readonly unknown: number;
  readonly kills: number;
  /** By kind, then by status. */
  readonly answers: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** How often each rule could have been broken. */
  readonly facts: Readonly<Record<string, number>>;
  /** How far the clocks may be apart. */
  readonly slackMs: number;
  readonly violations: Readonly<Partial<Record<Rule, number>>>;
  /** The first violations of each rule, with their operations. */
  readonly excerpts: readonly string[];
  /** What happened too rarely for the run to mean anything. */
  readonly missing: readonly string[];
}

/** Makes a run and judges it. */
export async function runLedger(options: RunOptions): Promise<Report> {
  const history = await record(options);
  return reportOf(history, options);
}

/** Judges a history. */
export function reportOf(
  history: History,
  { seed, operations, kills }: Pick<RunOptions, 'seed' | 'operations' | 'kills'>,
): Report {
  const { violations, facts } = check(history);
  const byRule = Map.groupBy(violations, ({ rule }) => rule);
  const ofClients = history.operations.filter(({ kind }) => kind !== 'sync');
  const answered = ofClients.filter((one) => answerOf(one) !== undefined).length;
  const answers = answersOf(history.operations);
  const report = { answered, kills: history.outages.length, answers, facts };
  return {
    ...report,
    seed,
    shards: history.shards,
    seconds: (history.operations.at(-1)?.calledMs ?? 0) / 1000,
    unknown: ofClients.length - answered,
    slackMs: history.slackMs,
    violations: Object.fromEntries([...byRule].map(([rule, found]) => [rule, found.length])),
    excerpts: RULES.flatMap((rule) => (byRule.get(rule) ?? []).slice(0, SHOWN_MAX)).map(excerptOf),
    missing: missingIn(report, { operations, kills }, history.slackMs),
  };
}

function answersOf(operations: readonly Operation[]): Record<string, Record<string, number>> {
  const byKind = Map.groupBy(operations, ({ kind }) => kind);
  const counts = [...byKind].map(([kind, all]): [string, Record<string, number>] => {
    const byLabel = Map.groupBy(all, ({ outcome }) =>
      outcome.kind === 'lost' ? `no answer (${outcome.why})` : labelOf(outcome),
    );
    const sorted = [...byLabel].sort(([a], [b]) => a.localeCompare(b));
    return [kind, Object.fromEntries(sorted.map(([label, { length }]) => [label, length]))];
  });
  return Object.fromEntries(counts);
}

/** Clocks further apart than this leave too little that is certain. */
const SLACK_MS_MAX = 100;

/** What there has to be, as a share of the operations. */
const LEAST: readonly (readonly [what: string, share: number])[] = [
  ['moments at which a proxy was certainly full', 0.01],
  ['leases answered to repeated keys', 0.001],
  ['repeated keys of leases that certainly lived', 0.001],
  ['grants after another one', 0.05],
  ['uses of leases that certainly lived', 0.1],
  ['uses after the time was over', 0.001],
  ['uses after a release', 0.01],
  ['uses after the proxy went away', 0.0005],
  ['late reports', 0.0005],
  ['leases with an order', 0.05],
  ['grants of a proxy whose state is certain', 0.05],
  ['cooldowns that are certain', 0.0005],
  ['of them on addresses of several proxies', 0.0002],
  ['counts told to agents', 0.005],
];

function missingIn(
  { answered, kills, answers, facts }: Pick<Report, 'answered' | 'kills' | 'answers' | 'facts'>,
  wanted: Pick<RunOptions, 'operations' | 'kills'>,
  slackMs: number,
): string[] {
  const missing: string[] = [];
  const atLeast = (what: string, count: number, least: number) => {
    if (count < least) missing.push(`${what}: ${count}, of at least ${Math.ceil(least)}`);
  };
  atLeast('operations answered', answered, wanted.operations);
  atLeast('kills', kills, wanted.kills);
  atLeast('renewals', answers['renew']?.['200'] ?? 0, answered * 0.02);
  for (const [what, share] of LEAST) atLeast(what, facts[what] ?? 0, answered * share);
  const undecided = facts['leases left undecided'] ?? 0;
  if (undecided > 0) missing.push(`${undecided} leases have too many orders to be decided`);
  if (slackMs > SLACK_MS_MAX) missing.push(`the clock was set: ${Math.round(slackMs)} ms of slack`);
  return missing;
}
