/** Adds up records of figures. */
export function sumRecords(
  records: readonly Readonly<Record<string, number>>[],
): Record<string, number> {
  const sums = new Map<string, number>();
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) {
      sums.set(name, (sums.get(name) ?? 0) + value);
    }
  }
  // By entries, since a name may be any text: `__proto__` is an ordinary one here.
  return Object.fromEntries(sums);
}
