/** Credentials of external proxies, as a Secret of type Opaque or basic-auth holds them. */
import type { Credentials } from '#shared/wire/sync.ts';

/** The decoded values of a Secret. */
export interface SecretData {
  readonly data: Readonly<Record<string, string>>;
}

/** Both keys of the contract, or undefined when one is missing. An empty password is a password. */
export function credentialsOf(secret: SecretData | undefined): Credentials | undefined {
  const username = value(secret, 'username');
  const password = value(secret, 'password');
  if (!username || password === undefined) return undefined;
  return { username, password };
}

/** Files and `kubectl create --from-file` leave a newline at the end that nobody means. */
function value(secret: SecretData | undefined, key: string): string | undefined {
  if (secret === undefined || !Object.hasOwn(secret.data, key)) return undefined;
  return secret.data[key]?.replace(/\r?\n$/, '');
}
