import { describe, expect, test } from 'vitest';
import { type Config, FLAGS, readConfig, unbuiltFlags } from '#agent/config.ts';
import { parseDuration } from '#agent/flags.ts';

const FILES: Readonly<Record<string, string>> = {
  '/providers.yaml': 'providers: []',
  '/token': 'file-token\n',
  '/empty': '\n',
};
const REQUIRED = ['--edge-url=https://edge.example', '--cluster-name=home'];
const ENV = { AGENT_TOKEN: 'agent-token', KUBECONFIG: '/kubeconfig' };

function read(
  argv: readonly string[],
  env: Record<string, string | undefined> = ENV,
  problems: readonly string[] = [],
  files = FILES,
) {
  return readConfig({
    argv,
    env,
    readText(path) {
      const text = files[path];
      if (text === undefined) throw new Error(`ENOENT: no such file, open '${path}'`);
      return text;
    },
    exists: (path) => path in files,
    checkProviders: () => problems,
  });
}

function config(argv: readonly string[] = REQUIRED, env = ENV, files = FILES): Config {
  const result = read(argv, env, [], files);
  if (result.kind !== 'config') throw new Error(JSON.stringify(result));
  return result.config;
}

function faults(...args: Parameters<typeof read>): readonly string[] {
  const result = read(...args);
  return result.kind === 'faults' ? result.faults : [];
}

describe('configuration', () => {
  test('the defaults are those of the contract', () => {
    expect(config()).toMatchObject({
      edgeUrl: 'https://edge.example',
      clusterName: 'home',
      providers: undefined,
      proxyNamespace: undefined,
      leaderElect: false,
      election: { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 },
      homeNamespace: 'crawl-system',
      metricsBind: { host: undefined, port: 8080 },
      providerCheckIntervalMs: 60_000,
      providerCheckTimeoutMs: 15_000,
      gcIntervalMs: 600_000,
      gcMinAgeMs: 600_000,
      gcAllowNamespaced: false,
      traceHealthProbes: false,
      gcpWireLogFullPayloads: false,
      logLevel: 'info',
      logFormat: 'json',
      token: { value: 'agent-token' },
      cluster: { kind: 'kubeconfig', paths: ['/kubeconfig'] },
    });
    expect(Object.isFrozen(config())).toBe(true);
  });

  test('every flag can come from its variable, and a flag wins over it', () => {
    const env = {
      ...ENV,
      AGENT_EDGE_URL: 'https://from-env.example/base/',
      AGENT_CLUSTER_NAME: 'env',
      AGENT_LEADER_ELECT: 'true',
      AGENT_GC_INTERVAL: '90s',
      AGENT_LOG_FORMAT: 'pretty',
    };
    expect(config(['--cluster-name', 'flag'], env)).toMatchObject({
      edgeUrl: 'https://from-env.example/base',
      clusterName: 'flag',
      leaderElect: true,
      gcIntervalMs: 90_000,
      logFormat: 'pretty',
    });
  });

  test('boolean flags take a value after an equals sign only', () => {
    expect(config([...REQUIRED, '--leader-elect']).leaderElect).toBe(true);
    expect(config([...REQUIRED, '--leader-elect=false']).leaderElect).toBe(false);
    expect(faults([...REQUIRED, '--leader-elect', 'false'])).toEqual([
      'false: arguments are not taken',
    ]);
  });

  test('all faults come at once, one line each, naming the flag or the variable', () => {
    const found = faults(
      [
        '--edge-url=ftp://x',
        '--cluster-name=Not_A_Name',
        '--metrics-bind-address=8080',
        '--gc-interval=soon',
        '--log-level=loud',
        '--no-such-flag',
        '--proxy-namespace',
      ],
      { KUBECONFIG: '/kubeconfig', AGENT_PROVIDER_CHECK_INTERVAL: '5s' },
    );
    expect(found).toEqual([
      '--no-such-flag: unknown flag',
      '--proxy-namespace: needs a value',
      'AGENT_PROVIDER_CHECK_INTERVAL: must be 0 or at least 10s',
      '--edge-url: must be an http or https URL without query',
      '--cluster-name: must be a DNS name of at most 63 characters',
      '--metrics-bind-address: must be HOST:PORT or :PORT, such as :8080',
      '--gc-interval: must be a duration such as 90s, 10m or 1h30m',
      '--log-level: must be one of trace, debug, info, warn, error, fatal',
      '--agent-token-file: required, unless AGENT_TOKEN holds the token for the edge',
    ]);
  });

  test('what is required is named when it is missing', () => {
    expect(faults([], {})).toEqual([
      '--edge-url: is required',
      '--cluster-name: is required',
      '--agent-token-file: required, unless AGENT_TOKEN holds the token for the edge',
      'KUBECONFIG: no cluster is known; name a kubeconfig, or run in a pod',
    ]);
  });

  test.each([
    [['--edge-url=https://user:pass@edge.example'], 'must not hold credentials'],
    [['--edge-url=https://edge.example/?a=b'], 'without query'],
    [['--providers-config=/missing.yaml'], "cannot be read: ENOENT: no such file, open '/missing"],
    [['--agent-token-file=/missing'], '--agent-token-file: cannot be read'],
    [['--agent-token-file=/empty'], '/empty: is empty'],
    [['--gc-interval=0'], '--gc-interval: must be above 0'],
    [
      [
        '--leader-elect-lease-duration=500ms',
        '--leader-elect-renew-deadline=300ms',
        '--leader-elect-retry-period=100ms',
      ],
      '--leader-elect-lease-duration: must be at least 1s',
    ],
    [['--leader-elect-lease-duration=10s'], 'below --leader-elect-lease-duration'],
    [['--leader-elect-retry-period=10s'], 'below --leader-elect-renew-deadline'],
    [['--provider-check-interval=20s', '--provider-check-timeout=30s'], 'must not be above'],
    [['--metrics-bind-address=:70000'], '--metrics-bind-address'],
    [['--edge-url', '--leader-elect'], '--edge-url: needs a value'],
    [['extra'], 'extra: arguments are not taken'],
    [['--provider-conf=/x'], '--provider-conf: unknown flag'],
  ])('%j is a fault: %s', (argv, message) => {
    const found = faults([...REQUIRED, ...argv]);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(message);
  });

  test('a token with blanks or hardly any characters is a fault that does not show it', () => {
    const found = faults(REQUIRED, { ...ENV, AGENT_TOKEN: 'tw o' });
    expect(found).toEqual(['AGENT_TOKEN: must be one word of at least 8 characters']);
  });

  test('the faults of the providers file name the flag, the file and the YAML path', () => {
    const argv = [...REQUIRED, '--providers-config=/providers.yaml'];
    expect(faults(argv, ENV, ['providers[0].name: is required', 'providers[1]: odd'])).toEqual([
      '--providers-config: /providers.yaml: providers[0].name: is required',
      '--providers-config: /providers.yaml: providers[1]: odd',
    ]);
    expect(config(argv).providers).toEqual({ path: '/providers.yaml', text: 'providers: []' });
  });

  test('the timeout of checks follows a shorter interval', () => {
    const argv = [...REQUIRED, '--provider-check-interval=10s'];
    expect(config(argv).providerCheckTimeoutMs).toBe(10_000);
    expect(config([...REQUIRED, '--provider-check-interval=0']).providerCheckIntervalMs).toBe(0);
  });

  test.each([
    [':9090', { host: undefined, port: 9090 }],
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['[::1]:8080', { host: '::1', port: 8080 }],
  ])('--metrics-bind-address=%s is %o', (text, bind) => {
    expect(config([...REQUIRED, `--metrics-bind-address=${text}`]).metricsBind).toEqual(bind);
  });

  test('the cluster is found by KUBECONFIG, the service account, the own file, in this order', () => {
    const pod = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '6443' };
    const all = { AGENT_TOKEN: 'agent-token', HOME: '/home/u', ...pod };
    const mounted = { '/var/run/secrets/kubernetes.io/serviceaccount/token': 't' };
    expect(config(REQUIRED, { ...all, KUBECONFIG: '/a:/b' }, mounted).cluster).toEqual({
      kind: 'kubeconfig',
      paths: ['/a', '/b'],
    });
    const inPod = { ...ENV, ...all, KUBECONFIG: '' };
    expect(config(REQUIRED, inPod, mounted).cluster).toEqual({
      kind: 'in-cluster',
      host: '10.0.0.1',
      port: '6443',
    });
    expect(config(REQUIRED, inPod, { '/home/u/.kube/config': '' }).cluster).toEqual({
      kind: 'kubeconfig',
      paths: ['/home/u/.kube/config'],
    });
  });

  test('flags of what is not in this build are named when they are given', () => {
    expect(unbuiltFlags(config())).toEqual([]);
    const argv = [...REQUIRED, '--trace-health-probes', '--leader-elect', '--log-level=debug'];
    expect(unbuiltFlags(config(argv))).toEqual(['--trace-health-probes']);
  });

  test('--help lists every flag with its variable, whatever else is wrong', () => {
    const result = read(['--nonsense', '--help'], {});
    if (result.kind !== 'print') throw new Error('no help');
    for (const flag of FLAGS) {
      expect(result.text).toContain(`--${flag.name}`);
      expect(result.text).toContain(`[${flag.env}]`);
    }
    expect(read(['--version'], {})).toEqual({
      kind: 'print',
      text: expect.stringMatching(/^agent \d+\.\d+\.\d+$/),
    });
  });
});

test.each([
  ['90s', 90_000],
  ['10m', 600_000],
  ['1h30m', 5_400_000],
  ['1.5h', 5_400_000],
  ['250ms', 250],
  ['0', 0],
  ['0s', 0],
  ['10', undefined],
  ['-5s', undefined],
  ['5 s', undefined],
  ['1d', undefined],
  ['', undefined],
  ['9999999h', undefined],
])('the duration %j is %s ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});
