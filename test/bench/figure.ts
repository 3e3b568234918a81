/** What a benchmark found, for people and for machines. */

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** What it is to be, in words; absent when nothing is asked of it. */
  readonly goal?: string;
  readonly ok?: boolean;
}

/** A figure that is to be at most `max`. */
export function atMost(name: string, value: number, unit: string, max: number): Figure {
  return { name, value, unit, goal: `at most ${max}`, ok: value <= max };
}

/** A figure that is to be at least `min`. */
export function atLeast(name: string, value: number, unit: string, min: number): Figure {
  return { name, value, unit, goal: `at least ${min}`, ok: value >= min };
}

/** A table, or one JSON document, on standard output. */
export function printFigures(figures: readonly Figure[], asJson: boolean): void {
  if (asJson) {
    process.stdout.write(`${JSON.stringify({ figures })}\n`);
    return;
  }
  const width = Math.max(...figures.map(({ name }) => name.length));
  for (const { name, value, unit, goal, ok } of figures) {
    const verdict = goal === undefined ? '' : `  (${goal}${ok === true ? '' : ', MISSED'})`;
    process.stdout.write(`${name.padEnd(width)}  ${shown(value).padStart(10)} ${unit}${verdict}\n`);
  }
}

function shown(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toPrecision(3);
}
