/** What every handler finds in Hono's context. */
import type { LedgerRpc } from '#edge/object/rpc.ts';

export interface EdgeEnv {
  Variables: {
    /** Taken over from the caller or made; also in the answer's headers and the log. */
    requestId: string;
    /** A stub of its own for each request: a broken one must not break the next. */
    ledger: LedgerRpc;
    /** Name of the token that the caller showed, if it has one. */
    client: string | undefined;
  };
}
