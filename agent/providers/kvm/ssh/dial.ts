/** Makes an SSH connection, to a host whose key is known, within a deadline. */
import type { Socket } from 'node:net';
import ssh2, { type ConnectConfig, type ServerHostKeyAlgorithm } from 'ssh2';
import type { Clock } from '#shared/clock.ts';
import { SshError } from './errors.ts';
import {
  fingerprintOf,
  type HostKeyVerdict,
  judgeHostKey,
  keyTypesOf,
  knownHostName,
  typeOf,
} from './known-hosts.ts';
import { SshLink } from './link.ts';
import { openSocket } from './socket.ts';

export interface SshTarget {
  /** Name or address. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
}

export interface SshCredentials {
  /** In OpenSSH's format, without passphrase; a secret. */
  readonly privateKey: string;
  /** Text of a `known_hosts` file. */
  readonly knownHosts: string;
}

export interface DialOptions {
  readonly clock: Clock;
  readonly dialTimeoutMs: number;
  readonly keepaliveIntervalMs: number;
  readonly keepaliveCountMax: number;
}

/** Keys that hosts have, and the algorithms that go with each; no SHA-1. */
const ALGORITHMS: Readonly<Record<string, readonly ServerHostKeyAlgorithm[]>> = {
  'ssh-ed25519': ['ssh-ed25519'],
  'ecdsa-sha2-nistp256': ['ecdsa-sha2-nistp256'],
  'ecdsa-sha2-nistp384': ['ecdsa-sha2-nistp384'],
  'ecdsa-sha2-nistp521': ['ecdsa-sha2-nistp521'],
  'ssh-rsa': ['rsa-sha2-512', 'rsa-sha2-256'],
};

/** Throws `SshError` alone; `signal` ends the attempt. */
export function dial(
  target: SshTarget,
  credentials: SshCredentials,
  options: DialOptions,
  signal: AbortSignal,
): Promise<SshLink> {
  const { host, port, user } = target;
  const where = `${user}@${knownHostName(host, port)}`;
  return new Promise((resolve, reject) => {
    checkKey(credentials.privateKey, where);
    const client = new ssh2.Client();
    const socket = openSocket(host, port);
    let refusal: SshError | undefined;
    const timer = options.clock.setTimer(() => {
      const within = `within ${options.dialTimeoutMs} ms`;
      fail(new SshError('unreachable', `${where} cannot be reached ${within}`));
    }, options.dialTimeoutMs);
    const onAbort = () =>
      fail(new SshError('closed', `the attempt to reach ${where} was given up`));
    signal.addEventListener('abort', onAbort, { once: true });
    const settled = () => {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
    };
    function fail(error: SshError): void {
      settled();
      reject(error);
      // Stays deaf: what it says after its end is of no use.
      client.on('error', () => undefined);
      socket.destroy();
    }
    client.on('error', (error: Error & { level?: string }) =>
      fail(refusal ?? failureOf(where, error)),
    );
    client.on('close', () =>
      fail(new SshError('unreachable', `${where} closed the connection at once`)),
    );
    client.once('ready', () => {
      settled();
      client.removeAllListeners('close');
      resolve(new SshLink(client, socket, where, options.clock));
    });
    if (signal.aborted) return onAbort();
    try {
      client.connect(
        configOf(socket, target, credentials, options, (key) => {
          const verdict = judgeHostKey(credentials.knownHosts, host, port, key);
          if (verdict !== 'trusted') refusal = hostKeyError(target, key, verdict);
          return verdict === 'trusted';
        }),
      );
    } catch (error) {
      fail(new SshError('credentials', `${where}: ${textOf(error)}`, { cause: error }));
    }
  });
}

function configOf(
  sock: Socket,
  { host, port, user }: SshTarget,
  { privateKey, knownHosts }: SshCredentials,
  options: DialOptions,
  hostVerifier: (key: Buffer) => boolean,
): ConnectConfig {
  // Keys of the kinds that are known come first, as a host may have several.
  const known = keyTypesOf(knownHosts, host, port).flatMap((type) => ALGORITHMS[type] ?? []);
  const serverHostKey = [...new Set([...known, ...Object.values(ALGORITHMS).flat()])];
  return {
    sock,
    username: user,
    privateKey,
    hostVerifier,
    algorithms: { serverHostKey },
    // The deadline is ours; the library's would be 20 s.
    readyTimeout: 0,
    keepaliveInterval: options.keepaliveIntervalMs,
    keepaliveCountMax: options.keepaliveCountMax,
  };
}

/** The library's own words for a key that it cannot read name no part of it. */
function checkKey(privateKey: string, where: string): void {
  const parsed = ssh2.utils.parseKey(privateKey);
  if (parsed instanceof Error) {
    throw new SshError('credentials', `the private key for ${where}: ${parsed.message}`);
  }
  if (!parsed.isPrivateKey()) {
    throw new SshError('credentials', `the private key for ${where} is a public one`);
  }
}

function hostKeyError(
  { host, port }: SshTarget,
  key: Buffer,
  verdict: Exclude<HostKeyVerdict, 'trusted'>,
): SshError {
  const name = knownHostName(host, port);
  const shown = `${typeOf(key)} ${fingerprintOf(key)}`;
  const why = {
    unknown: `known_hosts has no entry for ${name}, which presents ${shown}; add it if that is right`,
    changed: `${name} presents ${shown}, which is not the key that known_hosts has for it`,
    revoked: `${name} presents ${shown}, which known_hosts has revoked`,
  };
  return new SshError('hostKey', `the host key was not accepted: ${why[verdict]}`);
}

function failureOf(where: string, error: Error & { level?: string }): SshError {
  if (error.level === 'client-authentication') {
    const message = `${where} does not let this user in with this key`;
    return new SshError('auth', message, { cause: error });
  }
  return new SshError('unreachable', `${where} cannot be reached: ${textOf(error)}`, {
    cause: error,
  });
}

/** Several addresses of a name fail as one error without a text. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map(textOf).join(', ');
  }
  return error instanceof Error ? error.message : String(error);
}
