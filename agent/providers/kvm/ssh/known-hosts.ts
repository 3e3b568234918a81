/** Which host keys a `known_hosts` text trusts (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"). Pure. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** Why a key is not trusted: nothing is known of the host, another key is, or it is revoked. */
export type HostKeyVerdict = 'trusted' | 'unknown' | 'changed' | 'revoked';

interface Entry {
  readonly marker: string | undefined;
  readonly hosts: string;
  readonly type: string;
  /** Base64 of the key. */
  readonly key: string;
}

const DEFAULT_PORT = 22;

/** What `text` says of `key`, the public key that a host presents, in the wire's format. */
export function judgeHostKey(
  text: string,
  host: string,
  port: number,
  key: Buffer,
): HostKeyVerdict {
  const entries = entriesOf(text, host, port);
  const same = (entry: Entry) => Buffer.from(entry.key, 'base64').equals(key);
  if (entries.some((entry) => entry.marker === '@revoked' && same(entry))) return 'revoked';
  const trusting = entries.filter((entry) => entry.marker === undefined);
  if (trusting.length === 0) return 'unknown';
  return trusting.some(same) ? 'trusted' : 'changed';
}

/** Types of the keys that `text` trusts for a host, such as `ssh-ed25519`, in order. */
export function keyTypesOf(text: string, host: string, port: number): string[] {
  const trusting = entriesOf(text, host, port).filter(({ marker }) => marker === undefined);
  return [...new Set(trusting.map(({ type }) => type))];
}

/** As `ssh` writes it: `SHA256:` and base64 without padding. */
export function fingerprintOf(key: Buffer): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;
}

/** Type of a public key in the wire's format, or `unknown`. */
export function typeOf(key: Buffer): string {
  const length = key.length >= 4 ? key.readUInt32BE(0) : 0;
  return length > 0 && length <= key.length - 4 ? key.toString('latin1', 4, 4 + length) : 'unknown';
}

/** Name under which a host stands in `known_hosts`. */
export function knownHostName(host: string, port: number): string {
  return port === DEFAULT_PORT ? host : `[${host}]:${port}`;
}

/** Entries about a host. What `ssh` would skip is skipped: comments and lines that are no entry. */
function entriesOf(text: string, host: string, port: number): Entry[] {
  const names = [knownHostName(host, port), `[${host}]:${port}`].map((name) => name.toLowerCase());
  return text.split('\n').flatMap((line) => {
    const entry = entryOf(line);
    return entry !== undefined && names.some((name) => isAbout(entry, name)) ? [entry] : [];
  });
}

function entryOf(line: string): Entry | undefined {
  const words = line.trim().split(/\s+/);
  const marker = words[0]?.startsWith('@') ? words.shift() : undefined;
  const [hosts = '', type = '', key = ''] = words;
  if (hosts === '' || hosts.startsWith('#') || !isKey(type, key)) return undefined;
  return { marker, hosts, type, key };
}

/** A key says its own type once more; SSH1's numbers and a cut line do not. */
function isKey(type: string, key: string): boolean {
  return key !== '' && typeOf(Buffer.from(key, 'base64')) === type;
}

function isAbout({ hosts }: Entry, name: string): boolean {
  if (hosts.startsWith('|')) return isHashOf(hosts, name);
  const patterns = hosts.toLowerCase().split(',');
  const matching = (pattern: string) => patternOf(pattern).test(name);
  const refused = patterns.some((one) => one.startsWith('!') && matching(one.slice(1)));
  return !refused && patterns.some((one) => !one.startsWith('!') && matching(one));
}

/** `|1|salt|hash`: HMAC-SHA1 of the name, so that the text does not tell which hosts there are. */
function isHashOf(hashed: string, name: string): boolean {
  const [, version, salt = '', hash = ''] = hashed.split('|');
  if (version !== '1') return false;
  const expected = Buffer.from(hash, 'base64');
  const actual = createHmac('sha1', Buffer.from(salt, 'base64')).update(name).digest();
  return expected.length === actual.length && timingSafeEqual(expected, actual);
}

/** `*` and `?` stand for what they do in a shell; brackets are part of the name. */
function patternOf(pattern: string): RegExp {
  const escaped = pattern.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll('*', '.*').replaceAll('?', '.')}$`);
}
