/** A leader that dies or freezes leaves no second machine: a short run with two agents. */
import { describe, expect, it } from 'vitest';
import { readConfig, unbuiltFlags } from '#agent/config.ts';
import { cannotRun } from '#test/integration/agent-world.ts';
import { runCompeting } from './competing.ts';

const DISTURBANCES = 4;
const SEED = 20_262;
const TEST_MS_MAX = 240_000;

/** An agent that takes the flag and elects nobody would have nothing to show here. */
function whyNot(): string | undefined {
  const result = readConfig({
    argv: ['--leader-elect', '--edge-url=http://127.0.0.1', '--cluster-name=test'],
    env: { AGENT_TOKEN: 'token-of-agents', KUBECONFIG: 'kubeconfig' },
    checkProviders: () => [],
  });
  const unbuilt = result.kind === 'config' ? unbuiltFlags(result.config) : [];
  return unbuilt.length > 0 ? `needs ${unbuilt.join(', ')} in the agent` : cannotRun;
}

const reason = whyNot();
const title = `two agents of which one leads${reason === undefined ? '' : ` (${reason})`}`;

describe.skipIf(reason !== undefined)(title, () => {
  it(
    'leave one machine for each living Proxy when the leader is killed and frozen',
    async () => {
      const report = await runCompeting({
        kills: DISTURBANCES,
        seed: SEED,
        signal: AbortSignal.timeout(TEST_MS_MAX),
        onProgress: () => {},
      });
      expect(report.problems).toEqual([]);
      expect(Math.min(...Object.values(report.disturbances))).toBeGreaterThan(0);
      expect(report.made).toBeGreaterThan(2);
    },
    TEST_MS_MAX,
  );
});
