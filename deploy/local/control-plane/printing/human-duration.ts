/** Ages as kubectl shows them (`k8s.io/apimachinery/pkg/util/duration.HumanDuration`). */

const SECOND_MS = 1000;
const MINUTE_SECONDS = 60;
const HOUR_MINUTES = 60;
const DAY_HOURS = 24;
const YEAR_DAYS = 365;

/** `42s`, `5m10s`, `3h`, `2d5h`, `400d`, `3y20d`; clocks may disagree by a second. */
export function humanDuration(durationMs: number): string {
  const seconds = Math.trunc(durationMs / SECOND_MS);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 2 * MINUTE_SECONDS) return `${seconds}s`;
  const minutes = Math.trunc(seconds / MINUTE_SECONDS);
  if (minutes < 10) return joined(minutes, 'm', seconds % MINUTE_SECONDS, 's');
  if (minutes < 3 * HOUR_MINUTES) return `${minutes}m`;
  const hours = Math.trunc(minutes / HOUR_MINUTES);
  if (hours < 8) return joined(hours, 'h', minutes % HOUR_MINUTES, 'm');
  if (hours < 2 * DAY_HOURS) return `${hours}h`;
  const days = Math.trunc(hours / DAY_HOURS);
  if (days < 8) return joined(days, 'd', hours % DAY_HOURS, 'h');
  if (days < 2 * YEAR_DAYS) return `${days}d`;
  const years = Math.trunc(days / YEAR_DAYS);
  if (years < 8) return joined(years, 'y', days % YEAR_DAYS, 'd');
  return `${years}y`;
}

/** Time since an RFC 3339 timestamp; `<unknown>` without one, `<invalid>` for another text. */
export function ageOf(timestamp: unknown, nowMs: number): string {
  if (timestamp === undefined || timestamp === null || timestamp === '') return '<unknown>';
  const time = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN;
  return Number.isNaN(time) ? '<invalid>' : humanDuration(nowMs - time);
}

function joined(major: number, majorUnit: string, minor: number, minorUnit: string): string {
  return minor === 0 ? `${major}${majorUnit}` : `${major}${majorUnit}${minor}${minorUnit}`;
}
