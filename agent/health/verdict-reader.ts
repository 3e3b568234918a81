/** What the rest of the agent may know of the health engine: its present verdicts. */

export interface Verdict {
  /** null until a first verdict exists. */
  readonly healthy: boolean | null;
  /** CamelCase reason for the Healthy condition. */
  readonly reason: string;
  /** For a person; never holds credentials. */
  readonly message: string;
  /** Time of the probe that is reported, in milliseconds since the epoch. */
  readonly probedAtMs: number;
  readonly latencyMillis?: number;
  /** Address that the echo page saw. */
  readonly egressIP?: string;
}

export interface VerdictReader {
  /** Verdict on the proxy `namespace/name`; undefined when it is not probed. */
  verdict(key: string): Verdict | undefined;
}
