/** The value of a flag that is a whole number; the error names the flag and its bounds. */
export function whole(flag: string, text: string, min: number, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new Error(`${flag}: must be a whole number from ${min} to ${max}`);
}
