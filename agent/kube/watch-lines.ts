/** The lines of a watch: one JSON document each, cut anywhere by the network. */

/** Above what etcd stores for one object (1.5 MiB), counted in UTF-16 units. */
const LINE_LENGTH_MAX = 8 * 1024 * 1024;

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

export interface WatchEvent {
  readonly type: WatchEventType;
  readonly object: unknown;
}

/** Yields each complete line; a rest without newline at the end is a cut-off one and dropped. */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LINE_LENGTH_MAX) throw new Error('a line of the watch has no end');
    for (const line of lines) if (line !== '') yield line;
  }
}

const TYPES: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']);

/** Throws when the line is not a watch event. */
export function parseWatchEvent(line: string): WatchEvent {
  const event: unknown = JSON.parse(line);
  if (!isWatchEvent(event)) throw new Error('a line of the watch is not an event');
  return event;
}

function isWatchEvent(value: unknown): value is WatchEvent {
  return (
    typeof value === 'object' &&
    value !== null &&
    'type' in value &&
    TYPES.has(value.type) &&
    'object' in value
  );
}
