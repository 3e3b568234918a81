/** The edge keeps its promises while it is killed: two short runs of `npm run test:ledger`. */
import { describe, expect, it } from 'vitest';
import { runLedger } from './report.ts';

const OPERATIONS = 6_000;
const KILLS = 3;
const CLIENTS = 16;
const SEED = 20_263;
const TEST_MS_MAX = 120_000;

describe('an edge that is killed under load', () => {
  it.each([{ shards: 1 }, { shards: 4 }])(
    `answers as it should, with $shards shards`,
    async ({ shards }) => {
      const report = await runLedger({
        operations: OPERATIONS,
        clients: CLIENTS,
        kills: KILLS,
        shards,
        seed: SEED,
        signal: AbortSignal.timeout(TEST_MS_MAX),
        onProgress: () => {},
      });
      expect(report.excerpts.join('\n\n')).toBe('');
      expect(report.violations).toEqual({});
      expect(report.missing).toEqual([]);
    },
    TEST_MS_MAX,
  );
});
