import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadCredentials } from '#deploy/local/control-plane/http/credentials.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const YEAR_MS = 365 * 86_400_000;
const HOST = '127.0.0.1';

describe('credentials', () => {
  let folder: string;
  let file: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'credentials-'));
    file = join(folder, 'credentials.json');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('are made once and kept where only their owner reads them', async () => {
    const made = await loadCredentials(folder, HOST, NOW_MS);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await loadCredentials(folder, HOST, NOW_MS + YEAR_MS)).toEqual(made);
  });

  it('hold a certificate for this machine that the authority signed', async () => {
    const { caPem, certificatePem } = await loadCredentials(undefined, HOST, NOW_MS);
    const authority = new X509Certificate(caPem);
    const certificate = new X509Certificate(certificatePem);
    expect(certificate.checkIssued(authority)).toBe(true);
    expect(certificate.verify(authority.publicKey)).toBe(true);
    expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(certificate.checkHost('localhost')).toBe('localhost');
    expect([authority.ca, certificate.ca]).toEqual([true, false]);
  });

  it('differ from each other and from start to start', async () => {
    const first = await loadCredentials(undefined, HOST, NOW_MS);
    const second = await loadCredentials(undefined, HOST, NOW_MS);
    const tokens = [first, second].flatMap(({ adminToken, agentToken }) => [
      adminToken,
      agentToken,
    ]);
    expect(new Set(tokens).size).toBe(4);
  });

  it.each([
    ['the certificate is about to expire', HOST, NOW_MS + 10 * YEAR_MS],
    ['the server gets another address', '127.0.0.2', NOW_MS],
  ])('renew certificates and keep tokens when %s', async (_case, host, nowMs) => {
    const old = await loadCredentials(folder, HOST, NOW_MS);
    const renewed = await loadCredentials(folder, host, nowMs);
    expect(renewed.caPem).not.toBe(old.caPem);
    expect(renewed.adminToken).toBe(old.adminToken);
    expect(new X509Certificate(renewed.certificatePem).checkIP(host)).toBe(host);
  });

  it('name a damaged file and quote nothing of it', async () => {
    const { adminToken } = await loadCredentials(folder, HOST, NOW_MS);
    writeFileSync(file, readFileSync(file, 'utf8').slice(0, -20));
    const failure = await loadCredentials(folder, HOST, NOW_MS).catch((error: unknown) => error);
    expect(String(failure)).toContain(`${file} is damaged`);
    expect(String(failure)).not.toContain(adminToken.slice(0, 8));
  });
});
