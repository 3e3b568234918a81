import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import {
  apiServerArgs,
  etcdArgs,
  openAssetsCluster,
  tokenLines,
} from '#deploy/local/clusters/envtest.ts';
import { createProcessRecords } from '#deploy/local/process/records.ts';
import { openStateDir } from '#deploy/local/state-dir.ts';
import { systemClock as clock } from '#shared/clock.ts';

const folder = mkdtempSync(join(tmpdir(), 'assets-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const FILES = {
  etcdData: '/s/etcd',
  certificate: '/s/tls.crt',
  key: '/s/tls.key',
  tokens: '/s/tokens.csv',
  serviceAccountKey: '/s/sa.key',
};

it('lets etcd listen on this machine alone', () => {
  expect(etcdArgs(FILES, 1001, 1002)).toEqual([
    '--data-dir=/s/etcd',
    '--listen-client-urls=http://127.0.0.1:1001',
    '--advertise-client-urls=http://127.0.0.1:1001',
    '--listen-peer-urls=http://127.0.0.1:1002',
    '--initial-advertise-peer-urls=http://127.0.0.1:1002',
    '--initial-cluster=default=http://127.0.0.1:1002',
  ]);
});

it('asks the API server for RBAC, tokens and no default service accounts', () => {
  const args = apiServerArgs(FILES, 6443, 1001);
  expect(args).toContain('--etcd-servers=http://127.0.0.1:1001');
  expect(args).toContain('--secure-port=6443');
  expect(args).toContain('--authorization-mode=RBAC');
  expect(args).toContain('--token-auth-file=/s/tokens.csv');
  expect(args).toContain('--disable-admission-plugins=ServiceAccount');
  expect(args.filter((arg) => arg.includes('anonymous'))).toEqual([]);
});

it('makes the agent the service account that the manifests bind', () => {
  expect(tokenLines('admin-token', 'agent-token').trim().split('\n')).toEqual([
    'admin-token,admin,admin,"system:masters"',
    'agent-token,system:serviceaccount:crawl-system:egress-agent,agent,' +
      '"system:serviceaccounts,system:serviceaccounts:crawl-system"',
  ]);
});

it('names the program that the folder lacks', async () => {
  const state = await openStateDir(join(folder, 'state'));
  const records = createProcessRecords(state.processes);
  const parts = {
    clock,
    child: { clock, stackId: state.stackId, records },
    logDir: state.logs,
    observer: { restarting: () => {}, failed: () => {} },
  };
  const opening = openAssetsCluster(
    parts,
    { folder, port: 6443, state, env: {} },
    new AbortController().signal,
  );
  await expect(opening).rejects.toThrow(`KUBEBUILDER_ASSETS: ${folder} has no program etcd`);
  await state.unlock();
});
