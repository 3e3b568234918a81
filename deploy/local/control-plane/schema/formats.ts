/** The string formats that the API server checks; names outside this table are not checked. */
import { isIP, isIPv4, isIPv6 } from 'node:net';

const DATE = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
const DATE_TIME =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/;
const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
const HOSTNAME =
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;
const EMAIL = /^[^\s@<>]+@[^\s@<>]+$/;
const MAC = /^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/i;
const BYTE = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const DURATION = /^-?(\d+(\.\d+)?\s*(ns|us|µs|ms|s|m|h|d|w))+$/;
const HEX_COLOR = /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i;

const CHECKS: ReadonlyMap<string, (value: string) => boolean> = new Map([
  ['date', isDate],
  ['date-time', (value) => DATE_TIME.test(value) && isDate(value.slice(0, 10))],
  ['datetime', (value) => DATE_TIME.test(value) && isDate(value.slice(0, 10))],
  ['uuid', (value) => UUID.test(value)],
  ['uuid3', (value) => UUID.test(value)],
  ['uuid4', (value) => UUID.test(value)],
  ['uuid5', (value) => UUID.test(value)],
  ['hostname', (value) => HOSTNAME.test(value)],
  ['email', (value) => EMAIL.test(value)],
  ['ip', (value) => isIP(value) !== 0],
  ['ipv4', isIPv4],
  ['ipv6', isIPv6],
  ['cidr', isCidr],
  ['mac', (value) => MAC.test(value)],
  ['uri', isUri],
  ['byte', (value) => BYTE.test(value)],
  ['duration', (value) => DURATION.test(value)],
  ['hexcolor', (value) => HEX_COLOR.test(value)],
]);

/** Whether a string is of the format; true for formats that nobody checks. */
export function matchesFormat(format: string, value: string): boolean {
  return CHECKS.get(format)?.(value) ?? true;
}

/** Whether the text is an address and a prefix length that fits its family. */
export function isCidr(value: string): boolean {
  const match = /^([^/]+)\/(\d{1,3})$/.exec(value);
  const family = isIP(match?.[1] ?? '');
  if (match === null || family === 0) return false;
  return Number(match[2]) <= (family === 4 ? 32 : 128);
}

function isUri(value: string): boolean {
  return value.startsWith('/') || URL.canParse(value);
}

function isDate(value: string): boolean {
  if (!DATE.test(value)) return false;
  const parsed = new Date(`${value}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(value);
}
