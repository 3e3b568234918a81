/**
 * What a server needs to prove who it is and to know its callers: a certificate authority with one
 * server certificate, and one token for each user. Made on the first start, then kept in files
 * that only their owner can read.
 */
// The certificate library resolves its parts through decorators' metadata.
import 'reflect-metadata';
import { X509Certificate as NodeCertificate, randomBytes, webcrypto } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { z } from 'zod';

const FILE_NAME = 'credentials.json';
const OWNER_ONLY = 0o600;
const DAY_MS = 86_400_000;
const VALIDITY_DAYS = 3650;
/** A certificate this close to its end is made anew at the start. */
const RENEWAL_DAYS = 30;
const TOKEN_BYTES = 32;
const SERIAL_BYTES = 16;
const SIGNING = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

const schema = z.strictObject({
  caPem: z.string(),
  certificatePem: z.string(),
  keyPem: z.string(),
  adminToken: z.string().min(1),
  agentToken: z.string().min(1),
});

export type Credentials = Readonly<z.infer<typeof schema>>;

/**
 * Reads the credentials in `stateDir` or makes them; without `stateDir` they live in memory only.
 * Tokens outlive a renewal of the certificates.
 */
export async function loadCredentials(
  stateDir: string | undefined,
  host: string,
  nowMs: number,
): Promise<Credentials> {
  const stored = stateDir === undefined ? undefined : read(join(stateDir, FILE_NAME));
  if (stored !== undefined && isServing(stored.certificatePem, host, nowMs)) return stored;
  const credentials: Credentials = {
    ...(await createCertificates(host, nowMs)),
    adminToken: stored?.adminToken ?? newToken(),
    agentToken: stored?.agentToken ?? newToken(),
  };
  if (stateDir !== undefined) write(stateDir, credentials);
  return credentials;
}

function read(path: string): Credentials | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    // The cause would quote the file, which holds keys.
    throw new Error(`${path} is damaged; remove it and new credentials are made`);
  }
}

/** Written beside and renamed, so that a crash leaves the old file or the new one. */
function write(stateDir: string, credentials: Credentials): void {
  const path = join(stateDir, FILE_NAME);
  const draft = `${path}.new`;
  mkdirSync(stateDir, { recursive: true });
  writeFileSync(draft, `${JSON.stringify(credentials, undefined, 2)}\n`, { mode: OWNER_ONLY });
  chmodSync(draft, OWNER_ONLY);
  renameSync(draft, path);
}

function isServing(certificatePem: string, host: string, nowMs: number): boolean {
  const certificate = new NodeCertificate(certificatePem);
  const covers = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host);
  const endsMs = Date.parse(certificate.validTo);
  return covers !== undefined && endsMs - nowMs > RENEWAL_DAYS * DAY_MS;
}

function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

type Certificates = Pick<Credentials, 'caPem' | 'certificatePem' | 'keyPem'>;

/** The authority's key is dropped at once: it signs one certificate and nothing ever again. */
async function createCertificates(host: string, nowMs: number): Promise<Certificates> {
  x509.cryptoProvider.set(webcrypto);
  const validity = {
    notBefore: new Date(nowMs - DAY_MS),
    notAfter: new Date(nowMs + VALIDITY_DAYS * DAY_MS),
  };
  const authorityKeys = await newKeys();
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    name: 'CN=egress-local-ca',
    ...validity,
    signingAlgorithm: SIGNING,
    keys: authorityKeys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(authorityKeys.publicKey),
    ],
  });
  const serverKeys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: newSerial(),
    subject: 'CN=kube-apiserver',
    issuer: authority.subject,
    ...validity,
    signingAlgorithm: SIGNING,
    publicKey: serverKeys.publicKey,
    signingKey: authorityKeys.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(alternativeNames(host)),
      await x509.AuthorityKeyIdentifierExtension.create(authorityKeys.publicKey),
    ],
  });
  const key = await webcrypto.subtle.exportKey('pkcs8', serverKeys.privateKey);
  return {
    caPem: `${authority.toString('pem')}\n`,
    certificatePem: `${certificate.toString('pem')}\n`,
    keyPem: `${x509.PemConverter.encode(key, 'PRIVATE KEY')}\n`,
  };
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return await webcrypto.subtle.generateKey(SIGNING, true, ['sign', 'verify']);
}

/** Positive, as serial numbers have to be. */
function newSerial(): string {
  const bytes = randomBytes(SERIAL_BYTES);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

function alternativeNames(host: string): x509.JsonGeneralNames {
  const names = [...new Set(['127.0.0.1', 'localhost', host])];
  return names.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value }));
}
