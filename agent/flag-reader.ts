/** Typed values of flags; what is wrong with one becomes a line in a list that all share. */
import { type FlagReading, parseDuration } from './flags.ts';

/** Values of flags by type; what is wrong with one becomes a line, and a harmless value. */
export class FlagReader {
  readonly faults: string[];
  readonly #values: FlagReading['values'];

  constructor(flags: FlagReading, faults: string[]) {
    this.#values = flags.values;
    this.faults = faults;
  }

  fault(name: string, problem: string): void {
    this.faults.push(`${this.#values.get(name)?.source ?? `--${name}`}: ${problem}`);
  }

  has(name: string): boolean {
    return this.text(name) !== '';
  }

  text(name: string): string {
    return this.#values.get(name)?.text ?? '';
  }

  required(name: string): string {
    const value = this.text(name);
    if (value === '') this.fault(name, 'is required');
    return value;
  }

  matching(name: string, pattern: RegExp, what: string): string {
    const value = this.required(name);
    if (value !== '' && !pattern.test(value)) this.fault(name, `must be ${what}`);
    return value;
  }

  boolean(name: string): boolean {
    const value = this.text(name);
    if (value !== 'true' && value !== 'false') this.fault(name, 'must be true or false');
    return value === 'true';
  }

  oneOf<T extends string>(name: string, allowed: readonly [T, ...T[]]): T {
    const value = this.text(name);
    const found = allowed.find((each) => each === value);
    if (found === undefined) this.fault(name, `must be one of ${allowed.join(', ')}`);
    return found ?? allowed[0];
  }

  duration(name: string): number {
    const value = parseDuration(this.text(name));
    if (value === undefined) this.fault(name, 'must be a duration such as 90s, 10m or 1h30m');
    return value ?? 0;
  }

  positiveDuration(name: string): number {
    const value = this.duration(name);
    if (value === 0 && parseDuration(this.text(name)) === 0) this.fault(name, 'must be above 0');
    return value;
  }

  given(): string[] {
    const given = [...this.#values].filter(([, value]) => !value.isDefault);
    return given.map(([name]) => name);
  }
}
