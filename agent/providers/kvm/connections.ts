/**
 * Connections of all kvm providers of a process: those that use the same credentials share them,
 * also with the providers of the configuration before this one.
 */
import type { SecretStore } from '#agent/kube/secrets.ts';
import type { Clock, Random } from '#shared/clock.ts';
import type { KvmBlock } from '../config-kvm.ts';
import { CredentialsError } from './classify.ts';
import { createHosts, type Hosts } from './hosts.ts';
import { LibvirtSessions } from './sessions.ts';
import type { SshCredentials } from './ssh/dial.ts';
import { SshPool } from './ssh/pool.ts';

/** Keys of the Secret. */
const PRIVATE_KEY = 'id_ed25519';
const KNOWN_HOSTS = 'known_hosts';

export interface ConnectionDeps {
  /** Reads a Secret again when what it knows is old. */
  readonly secrets: Pick<SecretStore, 'get'>;
  readonly clock: Clock;
  readonly random: Random;
}

export interface Connections {
  /** Dials nothing. */
  hosts(block: Pick<KvmBlock, 'sshSecret'>): Hosts;
  /** Closes them all; nothing can be had from them afterwards. */
  close(): void;
}

export function createConnections({ secrets, clock, random }: ConnectionDeps): Connections {
  const known = new Map<string, { readonly pool: SshPool; readonly hosts: Hosts }>();
  return {
    hosts({ sshSecret }) {
      const { namespace, name } = sshSecret;
      const key = `${namespace}/${name}`;
      const existing = known.get(key);
      if (existing !== undefined) return existing.hosts;
      const credentials = (_target: unknown, signal: AbortSignal) =>
        readCredentials(secrets, sshSecret, signal);
      const pool = new SshPool({ clock, random, credentials });
      const hosts = createHosts(new LibvirtSessions({ clock, pool }), clock);
      known.set(key, { pool, hosts });
      return hosts;
    },
    close() {
      for (const { pool } of known.values()) pool.close();
    },
  };
}

/** Throws a `CredentialsError` that names the Secret and the key that it lacks. */
async function readCredentials(
  secrets: Pick<SecretStore, 'get'>,
  { namespace, name }: KvmBlock['sshSecret'],
  signal: AbortSignal,
): Promise<SshCredentials> {
  const secret = await secrets.get(namespace, name, signal);
  if (secret === undefined) {
    throw new CredentialsError(`the Secret ${namespace}/${name} with the SSH key does not exist`);
  }
  const value = (key: string) => {
    const text = secret.data[key];
    if (text !== undefined && text.trim() !== '') return text;
    throw new CredentialsError(`the Secret ${namespace}/${name} has no key ${key}`);
  };
  return { privateKey: value(PRIVATE_KEY), knownHosts: value(KNOWN_HOSTS) };
}
