/** Lines of known_hosts, and what they say of a key. */
import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  fingerprintOf,
  judgeHostKey,
  keyTypesOf,
  knownHostName,
  typeOf,
} from '#agent/providers/kvm/ssh/known-hosts.ts';

function makeKey(type: string, fill: number): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(type.length);
  return Buffer.concat([length, Buffer.from(type), Buffer.alloc(36, fill)]);
}

function hashed(name: string, salt = Buffer.alloc(20, 9)): string {
  const hash = createHmac('sha1', salt).update(name).digest('base64');
  return `|1|${salt.toString('base64')}|${hash}`;
}

const ED = makeKey('ssh-ed25519', 1);
const OTHER = makeKey('ssh-ed25519', 2);
const RSA = makeKey('ssh-rsa', 3);
const entry = (hosts: string, key: Buffer) => `${hosts} ${typeOf(key)} ${key.toString('base64')}`;

describe('a key that a host presents', () => {
  it.each([
    ['its own line', entry('hv1', ED), 'trusted'],
    ['its own line with a comment', `${entry('hv1', ED)} root@hv1`, 'trusted'],
    ['a line with Windows ends', `${entry('hv1', ED)}\r\n`, 'trusted'],
    ['a line in another case', entry('HV1', ED), 'trusted'],
    ['one of several names', entry('a,hv1,10.0.0.1', ED), 'trusted'],
    ['a pattern', entry('hv*', ED), 'trusted'],
    ['a pattern of one letter', entry('hv?', ED), 'trusted'],
    ['a pattern that would be a regular expression', entry('h.1', ED), 'unknown'],
    ['a negated pattern', entry('hv*,!hv1', ED), 'unknown'],
    ['a negated pattern of another', entry('hv*,!hv2', ED), 'trusted'],
    ['negation alone', entry('!hv2', ED), 'unknown'],
    ['a hashed name', entry(hashed('hv1'), ED), 'trusted'],
    ['a hashed name of another', entry(hashed('hv2'), ED), 'unknown'],
    ['a hash of another kind', entry(hashed('hv1').replace('|1|', '|2|'), ED), 'unknown'],
    ['a broken hash', entry('|1|x', ED), 'unknown'],
    ['the name with the usual port', entry('[hv1]:22', ED), 'trusted'],
    ['the name with another port', entry('[hv1]:2222', ED), 'unknown'],
    ['another key', entry('hv1', OTHER), 'changed'],
    ['a key of another type', entry('hv1', RSA), 'changed'],
    ['several keys', `${entry('hv1', OTHER)}\n${entry('hv1', ED)}`, 'trusted'],
    ['a revoked key', `${entry('hv1', ED)}\n@revoked ${entry('*', ED)}`, 'revoked'],
    ['another key that is revoked', `${entry('hv1', ED)}\n@revoked ${entry('*', RSA)}`, 'trusted'],
    ['a revoked key alone', `@revoked ${entry('hv1', ED)}`, 'revoked'],
    ['a certificate authority', `@cert-authority ${entry('hv1', ED)}`, 'unknown'],
    ['a comment', `# ${entry('hv1', ED)}`, 'unknown'],
    ['a line that is cut off', entry('hv1', ED).slice(0, 20), 'unknown'],
    ['a type that is not the key’s', entry('hv1', ED).replace('ssh-ed25519', 'ssh-rsa'), 'unknown'],
    ['nothing', '', 'unknown'],
  ])('is, by %s, %#', (_name, text, verdict) => {
    expect(judgeHostKey(text, 'hv1', 22, ED)).toBe(verdict);
  });

  it.each([
    ['its port', entry('[hv1]:2222', ED), 'trusted'],
    ['its port, hashed', entry(hashed('[hv1]:2222'), ED), 'trusted'],
    ['no port', entry('hv1', ED), 'unknown'],
    ['a pattern with its port', entry('[*]:2222', ED), 'trusted'],
  ])('at another port is known by a line with %s', (_name, text, verdict) => {
    expect(judgeHostKey(text, 'hv1', 2222, ED)).toBe(verdict);
  });

  it('of an IPv6 address is known by it', () => {
    expect(judgeHostKey(entry('fd00::1', ED), 'fd00::1', 22, ED)).toBe('trusted');
    expect(judgeHostKey(entry('[fd00::1]:2222', ED), 'fd00::1', 2222, ED)).toBe('trusted');
  });
});

it('tells which kinds of keys are known, in order and once', () => {
  const lines = [RSA, ED, OTHER].map((key) => entry('hv1', key));
  const text = [...lines, `@revoked ${entry('hv1', makeKey('ssh-dss', 1))}`].join('\n');
  expect(keyTypesOf(text, 'hv1', 22)).toEqual(['ssh-rsa', 'ssh-ed25519']);
});

it('shows a fingerprint as ssh does', () => {
  const key = Buffer.from(
    'AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl',
    'base64',
  );
  // GitHub's, as its documentation shows it.
  expect(fingerprintOf(key)).toBe('SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU');
});

it.each([
  [Buffer.alloc(0), 'unknown'],
  [Buffer.from('ffffffff', 'hex'), 'unknown'],
  [ED, 'ssh-ed25519'],
])('reads the type of a key that may be none', (key, type) => {
  expect(typeOf(key)).toBe(type);
});

it('names a host as known_hosts does', () => {
  expect(knownHostName('hv1', 22)).toBe('hv1');
  expect(knownHostName('hv1', 2222)).toBe('[hv1]:2222');
});
