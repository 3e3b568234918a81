/** Two worlds: plain Node for everything, workerd for what imports the Workers runtime. */
import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    reporters: ['default', './test/reporter.ts'],
    silent: 'passed-only',
    projects: [
      {
        test: {
          name: 'node',
          include: [
            'test/*.test.ts',
            'test/!(edge)/**/*.test.ts',
            'test/edge/{ledger,object,router}/**/*.test.ts',
          ],
          testTimeout: 30_000,
        },
      },
      {
        plugins: [
          cloudflareTest({
            wrangler: { configPath: './wrangler.toml' },
            miniflare: {
              bindings: {
                DISCOVERY_TOKEN: 'one=crawler-one-secret\ntwo=crawler-two-secret',
                AGENT_TOKEN: 'alpha=agent-alpha-secret\nbeta=agent-beta-secret',
              },
            },
          }),
        ],
        test: {
          name: 'workerd',
          include: ['test/edge/**/*.test.ts'],
          exclude: ['test/edge/{ledger,object,router}/**'],
          testTimeout: 30_000,
        },
      },
    ],
  },
});
