/** Why a host cannot be used by SSH. */

/**
 * - `hostKey`: the host's key is not the one in `known_hosts`.
 * - `auth`: the host does not let this user in with this key.
 * - `credentials`: the key cannot be read.
 * - `unreachable`: no connection within the deadline, or it broke before it stood.
 * - `socket`: connected, but the socket behind cannot be opened.
 * - `lost`: a connection that stood is no more.
 * - `closed`: this side has closed it.
 */
export type SshErrorKind =
  | 'hostKey'
  | 'auth'
  | 'credentials'
  | 'unreachable'
  | 'socket'
  | 'lost'
  | 'closed';

const PERMANENT: ReadonlySet<SshErrorKind> = new Set(['hostKey', 'auth', 'credentials']);

/** `message` names the host and never a key. */
export class SshError extends Error {
  override readonly name = 'SshError';
  readonly kind: SshErrorKind;

  constructor(kind: SshErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.kind = kind;
  }

  /** Trying again cannot heal it; an edit of the credentials or of the host can. */
  get permanent(): boolean {
    return PERMANENT.has(this.kind);
  }
}
