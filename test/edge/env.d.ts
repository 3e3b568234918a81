/** What the Worker is given in its tests: `wrangler.toml` and the tokens of `vitest.config.ts`. */
declare namespace Cloudflare {
  interface Env {
    LEDGER: DurableObjectNamespace<import('#edge/object/ledger-object.ts').LedgerObject>;
  }
  interface GlobalProps {
    mainModule: typeof import('#edge/worker.ts');
  }
}
