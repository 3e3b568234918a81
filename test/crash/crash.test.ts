/** Each side effect of the agent, at each moment, is survived: a short run of `npm run test:crash`. */
import { describe, expect, it } from 'vitest';
import { cannotRun } from '#test/integration/agent-world.ts';
import { runKills } from './kills.ts';
import { targetsOf } from './plan.ts';
import { openGcpSite } from './sites/gcp.ts';
import { openKubernetesSite } from './sites/kubernetes.ts';

const KILLS = 25;
const SEED = 20_261;
const TEST_MS_MAX = 180_000;

const title = (name: string) => (cannotRun === undefined ? name : `${name} (${cannotRun})`);

const SITES = { kubernetes: openKubernetesSite, gcp: openGcpSite };

describe.skipIf(cannotRun !== undefined)(title('an agent that is killed'), () => {
  it.each(Object.entries(SITES))(
    `leaves one machine (%s) for each living Proxy after ${KILLS} kills`,
    async (_name, openSite) => {
      const site = await openSite();
      const report = await runKills(
        {
          kills: KILLS,
          seed: SEED,
          signal: AbortSignal.timeout(TEST_MS_MAX),
          onProgress: () => {},
        },
        async () => site,
      );
      expect(report.problems).toEqual([]);
      expect(report.kills).toHaveLength(KILLS);
      for (const target of targetsOf(site.effects)) expect(report.kills).toContainEqual(target);
      expect(report.made).toBeGreaterThan(5);
    },
    TEST_MS_MAX,
  );
});
