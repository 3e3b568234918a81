import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildConfigMap, buildPod } from '#agent/providers/kubernetes/pod.ts';
import { squidConfig } from '#agent/providers/kubernetes/squid-config.ts';
import { configWith, request, SQUID } from './block.ts';

const block = configWith().kubernetes;

describe('the pod', () => {
  const pod = buildPod(request, block);
  const container = pod.spec?.containers[0];

  test('has no more rights than the restricted profile gives, and no token', () => {
    expect(pod.spec).toMatchObject({
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 13,
        seccompProfile: { type: 'RuntimeDefault' },
      },
    });
    expect(pod.spec?.hostNetwork).toBeUndefined();
    expect(container?.securityContext).toEqual({
      runAsNonRoot: true,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });

  test('runs squid itself, probed where it listens', () => {
    expect(container?.command).toEqual(['squid', '-N', '-f', '/etc/egress/squid.conf']);
    expect(container?.ports).toEqual([{ name: 'proxy', containerPort: 3128, protocol: 'TCP' }]);
    expect(container?.readinessProbe?.tcpSocket).toEqual({ port: 3128 });
    expect(container?.livenessProbe?.tcpSocket).toEqual({ port: 3128 });
    expect(container?.resources).toEqual({
      requests: { cpu: '50m', memory: '128Mi' },
      limits: { memory: '256Mi' },
    });
  });

  test('mounts every volume, and no other', () => {
    const volumes = pod.spec?.volumes?.map((volume) => volume.name).sort();
    expect(container?.volumeMounts?.map((mount) => mount.name).sort()).toEqual(volumes);
    const config = pod.spec?.volumes?.find((volume) => volume.name === 'config');
    expect(config?.configMap?.name).toBe(buildConfigMap(request, block, 'u').metadata?.name);
  });

  test('may bind a low port without a privilege for it', () => {
    const low = buildPod({ ...request, port: 80 }, block);
    expect(low.spec?.securityContext?.sysctls).toEqual([
      { name: 'net.ipv4.ip_unprivileged_port_start', value: '0' },
    ]);
    expect(pod.spec?.securityContext?.sysctls).toBeUndefined();
  });

  test('takes what the block says', () => {
    const custom = configWith({
      imagePullPolicy: 'Always',
      imagePullSecrets: ['pull'],
      nodeSelector: { pool: 'egress' },
      tolerations: [{ key: 'egress', operator: 'Exists' }],
      runAsUser: 100,
      terminationGracePeriodSeconds: 3,
      resources: { limits: { cpu: 1, memory: '1Gi' } },
    }).kubernetes;
    expect(buildPod(request, custom).spec).toMatchObject({
      imagePullSecrets: [{ name: 'pull' }],
      nodeSelector: { pool: 'egress' },
      tolerations: [{ key: 'egress', operator: 'Exists' }],
      terminationGracePeriodSeconds: 3,
      securityContext: { runAsUser: 100 },
      containers: [
        { imagePullPolicy: 'Always', resources: { limits: { cpu: '1', memory: '1Gi' } } },
      ],
    });
  });

  test('is plain JSON: nothing in it is undefined', () => {
    for (const object of [pod, buildConfigMap(request, block, 'u')]) {
      expect(JSON.parse(JSON.stringify(object))).toStrictEqual(object);
    }
  });
});

describe('the configuration', () => {
  const lines = squidConfig(3128, 'proxy-a', block).split('\n');

  test('has exactly one plain http_port line', () => {
    expect(lines.filter((line) => line.includes('http_port'))).toEqual(['http_port 3128']);
  });

  test('lets nobody in but the clients that are named, and denies the rest last', () => {
    const rules = lines.filter((line) => line.startsWith('http_access'));
    expect(rules).toEqual([
      'http_access deny manager',
      'http_access deny !clients',
      'http_access deny !allowed_ports',
      'http_access deny denied_destinations',
      'http_access allow clients',
      'http_access deny all',
    ]);
    expect(lines.filter((line) => line.startsWith('acl clients '))).toEqual(
      block.allowedClients.map((range) => `acl clients src ${range}`),
    );
  });

  test('tells targets nothing of the proxy or of who is behind it, and stores nothing', () => {
    for (const line of ['via off', 'forwarded_for delete', 'cache deny all', 'access_log none']) {
      expect(lines).toContain(line);
    }
  });

  test.skipIf(SQUID === '')(
    'is taken by a real Squid without a complaint about it (needs squid)',
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'squid-config-'));
      try {
        for (const custom of [{}, { deniedDestinations: [], allowedPorts: [443, '8000-8010'] }]) {
          const file = join(folder, 'squid.conf');
          writeFileSync(file, squidConfig(3128, 'proxy-a', configWith(custom).kubernetes));
          execFileSync(SQUID, ['-k', 'parse', '-f', file], { stdio: 'pipe' });
          const { stderr } = spawnSync(SQUID, ['-k', 'parse', '-f', file], { encoding: 'utf8' });
          const complaints = stderr.split('\n').filter((line) => /WARNING|ERROR|FATAL/.test(line));
          // Squid's word on `via off`: proxies that must not be seen do not send the header.
          const expected = /HTTP requires the use of Via/;
          expect(complaints.filter((line) => !expected.test(line))).toEqual([]);
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});
