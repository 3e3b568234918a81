/** `metav1.MicroTime` of a time in milliseconds: servers refuse one without all six digits. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
