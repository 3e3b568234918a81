/** What is measured: a server of leases, its fleet filled in and partly used. */

export interface Server extends AsyncDisposable {
  readonly url: string;
  /** All of it that uses CPU time; their descendants count, too. */
  readonly pids: readonly number[];
  /** To be called before each measurement. */
  refresh(): Promise<void>;
}

/** What a server is started with. */
export interface ServerDeps {
  /** A folder of its own. */
  readonly dir: string;
  /** Acquires leases by the API and keeps them. */
  hold(url: string, leases: number): Promise<void>;
}

export type StartServer = (deps: ServerDeps) => Promise<Server>;
