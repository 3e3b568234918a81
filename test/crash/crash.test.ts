/** Each side effect of the agent, at each moment, is survived: a short run of `npm run test:crash`. */
import { describe, expect, it } from 'vitest';
import { cannotRun } from '#test/integration/agent-world.ts';
import { runKills } from './kills.ts';
import { TARGETS } from './plan.ts';

const KILLS = 25;
const SEED = 20_261;
const TEST_MS_MAX = 180_000;

const title = (name: string) => (cannotRun === undefined ? name : `${name} (${cannotRun})`);

describe.skipIf(cannotRun !== undefined)(title('an agent that is killed'), () => {
  it(
    `leaves one machine for each living Proxy after ${KILLS} kills`,
    async () => {
      const report = await runKills({
        kills: KILLS,
        seed: SEED,
        signal: AbortSignal.timeout(TEST_MS_MAX),
        onProgress: () => {},
      });
      expect(report.problems).toEqual([]);
      expect(report.kills).toHaveLength(KILLS);
      for (const target of TARGETS) expect(report.kills).toContainEqual(target);
      expect(report.made).toBeGreaterThan(5);
    },
    TEST_MS_MAX,
  );
});
