/** The first words of a session: who may come in, which driver answers, what it can do. */
import type { Connection } from './connection.ts';
import { isLibvirtError, LibvirtRefusedError } from './errors.ts';
import { PROCEDURES as CALL } from './procedures.ts';

/** `VIR_DRV_FEATURE_PROGRAM_KEEPALIVE`. */
const FEATURE_KEEPALIVE = 10;
const AUTH_NONE = 0;
const AUTH_POLKIT = 2;
/** The first with all procedures of the table: addresses of domains came with 1.2.14. */
const VERSION_MIN = 1_002_014;

/** Opens the session, watched by keepalives where libvirt answers them; gives its version. */
export async function shakeHands(
  connection: Connection,
  uri: string,
  signal: AbortSignal,
): Promise<string> {
  await authenticate(connection, signal);
  await connection.call(CALL.connectOpen, { uri, flags: 0 }, signal);
  const { version } = await connection.call(CALL.connectGetLibVersion, undefined, signal);
  if (version < VERSION_MIN) {
    const asked = `libvirt ${versionText(version)} is too old; it must be at least`;
    throw new LibvirtRefusedError('version', `${asked} ${versionText(VERSION_MIN)}`);
  }
  if (await supportsKeepalive(connection, signal)) connection.keepAlive();
  return versionText(version);
}

async function authenticate(connection: Connection, signal: AbortSignal): Promise<void> {
  const { types } = await connection.call(CALL.authList, undefined, signal);
  if (types.length === 0 || types.includes(AUTH_NONE)) return;
  const how = types.includes(AUTH_POLKIT) ? 'polkit' : 'SASL';
  throw new LibvirtRefusedError(
    'auth',
    `libvirt asks for ${how} on this socket; set auth_unix_rw = "none" in libvirtd.conf ` +
      "and let the socket's group decide who may use it",
  );
}

async function supportsKeepalive(connection: Connection, signal: AbortSignal): Promise<boolean> {
  const feature = FEATURE_KEEPALIVE;
  try {
    const answer = await connection.call(CALL.connectSupportsFeature, { feature }, signal);
    return answer.supported !== 0;
  } catch (error) {
    if (isLibvirtError(error, 'noSupport', 'rpc', 'operationUnsupported')) return false;
    throw error;
  }
}

/** 9000003 is 9.0.3. */
function versionText(version: number): string {
  return [Math.floor(version / 1_000_000), Math.floor(version / 1000) % 1000, version % 1000].join(
    '.',
  );
}
