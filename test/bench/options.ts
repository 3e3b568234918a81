/** What a benchmark is told besides its name. */

/** Tells how far it is, on stderr. */
export type Progress = (line: string) => void;

export interface BenchOptions {
  /** Times that each thing is measured; absent: as the benchmark thinks right. */
  readonly rounds?: number | undefined;
  /** Length of one measurement. */
  readonly seconds?: number | undefined;
  /** Only what has this in its name. */
  readonly only?: string | undefined;
  /** Another checkout of the repository, whose edge is measured. */
  readonly edge?: string | undefined;
  /** Tell where the time goes instead. */
  readonly profile?: boolean | undefined;
}
