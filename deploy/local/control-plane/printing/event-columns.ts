/** The table of events, for both of their APIs (core `v1` and `events.k8s.io/v1`). */
import { type JsonObject, objectOf } from '../json.ts';
import { field, fieldText, type TableColumn, textColumn } from './columns.ts';
import { ageOf, humanDuration } from './human-duration.ts';

export const eventColumns: TableColumn[] = [
  textColumn('Last Seen', lastSeen),
  textColumn('Type', (event) => fieldText(event, 'type')),
  textColumn('Reason', (event) => fieldText(event, 'reason')),
  textColumn('Object', subject),
  textColumn('Subobject', (event) => fieldText(regarding(event), 'fieldPath'), 1),
  textColumn('Source', source, 1),
  textColumn('Message', (event) =>
    (fieldText(event, 'message') || fieldText(event, 'note')).trim(),
  ),
  textColumn('First Seen', firstSeen, 1),
  textColumn('Count', seenCount, 1),
  { ...textColumn('Name', (event) => fieldText(event, 'metadata', 'name'), 1), format: 'name' },
];

function regarding(event: JsonObject): JsonObject {
  return objectOf(event.involvedObject ?? event.regarding);
}

function subject(event: JsonObject): string {
  const object = regarding(event);
  const kind = fieldText(object, 'kind').toLowerCase();
  const name = fieldText(object, 'name');
  return kind === '' || name === '' ? kind || name : `${kind}/${name}`;
}

function source(event: JsonObject): string {
  const { component = '', host = '' } = objectOf(event.source ?? event.deprecatedSource);
  const name = component || event.reportingComponent || event.reportingController || '';
  const place = host || (component ? '' : event.reportingInstance) || '';
  return [name, place].filter((part) => part !== '').join(', ');
}

function lastSeen(event: JsonObject, nowMs: number): string {
  const series = field(event, 'series', 'lastObservedTime');
  const last = series ?? event.lastTimestamp ?? event.deprecatedLastTimestamp;
  if (last === undefined || last === null) return firstSeen(event, nowMs);
  const count = seenCount(event);
  if (series === undefined || count <= 1) return ageOf(last, nowMs);
  return `${ageOf(last, nowMs)} (x${count} over ${firstSeen(event, nowMs)})`;
}

function firstSeen(event: JsonObject, nowMs: number): string {
  const first = event.firstTimestamp ?? event.deprecatedFirstTimestamp;
  const eventTime = typeof event.eventTime === 'string' ? Date.parse(event.eventTime) : Number.NaN;
  if (first === undefined || first === null) {
    return Number.isNaN(eventTime) ? '<unknown>' : humanDuration(nowMs - eventTime);
  }
  return ageOf(first, nowMs);
}

function seenCount(event: JsonObject): number {
  const count = field(event, 'series', 'count') ?? event.count ?? event.deprecatedCount;
  return typeof count === 'number' && count > 0 ? count : 1;
}
