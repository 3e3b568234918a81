/**
 * The rules of the provider contract as tests. A provider's author writes a `Backend` and calls
 * `describeProvider`; nothing else is needed.
 */
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { Backend } from './backend.ts';
import { CHECK_RULES } from './rules/check.ts';
import { CREATE_RULES } from './rules/create.ts';
import { DELETE_RULES } from './rules/delete.ts';
import { ERROR_RULES } from './rules/errors.ts';
import { GET_RULES } from './rules/get.ts';
import { LIST_RULES } from './rules/list.ts';
import { type Rule, World } from './world.ts';

export const RULES: readonly Rule[] = [
  ...CREATE_RULES,
  ...GET_RULES,
  ...DELETE_RULES,
  ...LIST_RULES,
  ...ERROR_RULES,
  ...CHECK_RULES,
];

/** Opening a backend and letting it go; booting a hypervisor is among it. */
const SETUP_MS_MAX = 120_000;
/** A rule waits for machines a few times at most; each wait has a deadline of its own. */
const RULE_MS_MAX = 300_000;

/**
 * Runs every rule against one backend. Rules share it and make machines of their own.
 *
 * @param cannotRun why the backend cannot be had on this machine, such as `needs squid`.
 */
export function describeProvider(
  name: string,
  openBackend: () => Promise<Backend>,
  cannotRun?: string,
): void {
  const title = `the ${name} provider${cannotRun === undefined ? '' : ` (${cannotRun})`}`;
  describe.skipIf(cannotRun !== undefined)(title, () => {
    let backend: Backend | undefined;
    beforeAll(async () => {
      backend = await openBackend();
    }, SETUP_MS_MAX);
    afterAll(() => backend?.close(), SETUP_MS_MAX);

    for (const rule of RULES) {
      it(rule.title, { timeout: RULE_MS_MAX }, async (context) => {
        if (backend === undefined) throw new Error('the backend did not open');
        const world = new World(backend, (reason) => context.skip(reason));
        try {
          await rule.run(world);
        } finally {
          await world.tidy();
        }
      });
    }
  });
}
