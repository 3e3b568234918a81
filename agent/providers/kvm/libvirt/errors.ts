/** What can go wrong, by who says so: libvirt, the connection, or the bytes that were to be sent. */

/**
 * Codes of libvirt's errors (`virErrorNumber`), those that a client decides by. A code that is not
 * here is still in `LibvirtError.code`.
 */
export const ERROR_CODE = {
  internalError: 1,
  noSupport: 3,
  invalidArgument: 8,
  operationFailed: 9,
  domainExists: 20,
  xmlError: 27,
  systemError: 38,
  rpc: 39,
  noDomain: 42,
  noNetwork: 43,
  authFailed: 45,
  noStoragePool: 49,
  noStorageVolume: 50,
  operationInvalid: 55,
  configUnsupported: 67,
  operationTimeout: 68,
  argumentUnsupported: 74,
  noDomainMetadata: 80,
  operationUnsupported: 84,
  agentUnresponsive: 86,
  resourceBusy: 87,
  accessDenied: 88,
  storageVolumeExists: 90,
} as const;

/** libvirt answered, with an error of its own. */
export class LibvirtError extends Error {
  override readonly name = 'LibvirtError';
  /** What happened: `ERROR_CODE`. */
  readonly code: number;
  /** Which part of libvirt says so (`virErrorDomain`): 10 QEMU, 18 storage, 19 network, … */
  readonly domain: number;
  /** 1 warning, 2 error. */
  readonly level: number;

  constructor(fields: { code: number; domain: number; level: number; message: string | null }) {
    super(fields.message ?? `error ${fields.code}`);
    this.code = fields.code;
    this.domain = fields.domain;
    this.level = fields.level;
  }
}

/** `error` is libvirt's own and has one of `codes`. */
export function isLibvirtError(
  error: unknown,
  ...codes: readonly (keyof typeof ERROR_CODE)[]
): error is LibvirtError {
  return error instanceof LibvirtError && codes.some((code) => ERROR_CODE[code] === error.code);
}

/**
 * - `ended`: the other side closed the stream, or the stream failed.
 * - `protocol`: what came is not the protocol.
 * - `silent`: keepalives were not answered.
 * - `closed`: this side closed it.
 */
export type ConnectionEnd = 'ended' | 'protocol' | 'silent' | 'closed';

/** The connection is no more; every call on it fails with this. What was asked may have happened. */
export class LibvirtConnectionError extends Error {
  override readonly name = 'LibvirtConnectionError';
  readonly kind: ConnectionEnd;

  constructor(kind: ConnectionEnd, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.kind = kind;
  }
}

/**
 * libvirt lets nobody in on this socket without asking (`auth`), or is too old (`version`). Only its
 * administrator can change that.
 */
export class LibvirtRefusedError extends Error {
  override readonly name = 'LibvirtRefusedError';
  readonly kind: 'auth' | 'version';

  constructor(kind: 'auth' | 'version', message: string) {
    super(message);
    this.kind = kind;
  }
}

/**
 * An upload was given up by this side: the source had fewer (`short`) or more (`long`) bytes than it
 * should, or none were taken for too long (`stalled`). The volume holds a part of them.
 */
export class LibvirtUploadError extends Error {
  override readonly name = 'LibvirtUploadError';
  readonly kind: 'short' | 'long' | 'stalled';
  /** Bytes handed to the connection. */
  readonly sent: number;

  constructor(kind: 'short' | 'long' | 'stalled', sent: number, message: string) {
    super(message);
    this.kind = kind;
    this.sent = sent;
  }
}
