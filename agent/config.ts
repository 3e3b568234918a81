/**
 * Flags and environment as one frozen configuration (contract §4). All faults are found before any
 * is reported, one line each, naming the flag, the variable or the YAML path. Nothing else in the
 * agent reads the environment.
 */
import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { delimiter, join } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { FlagReader } from './flag-reader.ts';
import { type FlagSpec, flagHelp, readFlags } from './flags.ts';
import type { ElectionTiming } from './runtime/lease.ts';

export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFormat = (typeof LOG_FORMATS)[number];

export interface Config {
  /** Text of the providers file; undefined without `--providers-config`. */
  readonly providers: { readonly path: string; readonly text: string } | undefined;
  readonly edgeUrl: string;
  readonly clusterName: string;
  /** Undefined: every namespace. */
  readonly proxyNamespace: string | undefined;
  readonly leaderElect: boolean;
  readonly election: ElectionTiming;
  readonly metricsBind: { readonly host: string | undefined; readonly port: number };
  /** 0: no checks. */
  readonly providerCheckIntervalMs: number;
  readonly providerCheckTimeoutMs: number;
  readonly gcIntervalMs: number;
  readonly gcMinAgeMs: number;
  readonly gcAllowNamespaced: boolean;
  readonly traceHealthProbes: boolean;
  readonly gcpWireLogFullPayloads: boolean;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  readonly token: { readonly value: string } | { readonly file: string };
  readonly cluster:
    | { readonly kind: 'kubeconfig'; readonly paths: readonly string[] }
    | { readonly kind: 'in-cluster'; readonly host: string; readonly port: string };
  /** Name of this process in events and logs: the pod's name in a cluster. */
  readonly instance: string;
  /** Where the agent is at home: its Lease and the id of the installation are there. */
  readonly homeNamespace: string;
  readonly version: string;
  /** Flags that were set to something else than their default. */
  readonly given: readonly string[];
}

export type ConfigResult =
  | { readonly kind: 'config'; readonly config: Config }
  /** `--help` or `--version`: print and exit 0. */
  | { readonly kind: 'print'; readonly text: string }
  /** Print each line on stderr and exit 2. */
  | { readonly kind: 'faults'; readonly faults: readonly string[] };

export interface ConfigSources {
  readonly argv?: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly readText?: (path: string) => string;
  readonly exists?: (path: string) => boolean;
  /** Faults of the text of a providers file, each naming its YAML path. */
  readonly checkProviders: (text: string) => readonly string[];
}

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export const LOG_FORMATS = ['json', 'pretty'] as const;
const CHECK_INTERVAL_MS_MIN = 10_000;
const CHECK_TIMEOUT_MS_DEFAULT = 15_000;
/** A Lease counts in whole seconds. */
const LEASE_DURATION_MS_MIN = 1_000;
const TOKEN_LENGTH_MIN = 8;
/** A DNS label: it becomes a segment of a URL and a label of metrics. */
const CLUSTER_NAME = /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/;
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const SERVICE_ACCOUNT_TOKEN = `${SERVICE_ACCOUNT}/token`;
/** Of the manifests in `deploy/`. */
const HOME_NAMESPACE_DEFAULT = 'crawl-system';

const text = (name: string, value: string, help: string, fallback?: string): FlagSpec => ({
  name,
  env: envName(name),
  kind: 'text',
  value,
  help,
  ...(fallback === undefined ? {} : { default: fallback }),
});
const toggle = (name: string, help: string): FlagSpec => ({
  name,
  env: envName(name),
  kind: 'boolean',
  default: 'false',
  help,
});

/** `--agent-token-file` does not become `AGENT_AGENT_…`. */
function envName(flag: string): string {
  return `AGENT_${flag
    .replace(/^agent-/, '')
    .replaceAll('-', '_')
    .toUpperCase()}`;
}

export const FLAGS: readonly FlagSpec[] = [
  text('providers-config', 'PATH', 'providers.yaml; without it only External proxies work'),
  text('edge-url', 'URL', 'base URL of the edge; required'),
  text('cluster-name', 'NAME', 'name of this cluster at the edge; required'),
  text('proxy-namespace', 'NAME', 'the one namespace to serve; every one if unset'),
  toggle('leader-elect', 'act only as the elected one of several replicas'),
  text('leader-elect-lease-duration', 'DURATION', 'a leader that is silent so long is over', '15s'),
  text('leader-elect-renew-deadline', 'DURATION', 'a leader that cannot renew stops then', '10s'),
  text('leader-elect-retry-period', 'DURATION', 'time between tries to renew or to acquire', '2s'),
  text('metrics-bind-address', 'HOST:PORT', 'serves /metrics, /healthz and /readyz', ':8080'),
  text('provider-check-interval', 'DURATION', 'time between provider checks; 0 is off', '1m'),
  text('provider-check-timeout', 'DURATION', 'default: the smaller of 15s and the interval'),
  text('gc-interval', 'DURATION', 'time between sweeps for orphaned instances', '10m'),
  text('gc-min-age', 'DURATION', 'younger instances are never swept', '10m'),
  toggle('gc-allow-namespaced', 'sweep although --proxy-namespace hides other proxies'),
  toggle('trace-health-probes', 'a trace span for each probe'),
  toggle(
    'gcp-wire-log-full-payloads',
    'show bodies in the wire log (--log-level=trace) of Compute Engine',
  ),
  text('log-level', 'LEVEL', LOG_LEVELS.join(', '), 'info'),
  text('log-format', 'FORMAT', LOG_FORMATS.join(' or '), 'json'),
  text('agent-token-file', 'PATH', 'file with the token for the edge, in place of AGENT_TOKEN'),
];

/** Accepted and checked, since the contract names them; what they control is not in this build. */
const UNBUILT: ReadonlySet<string> = new Set(['trace-health-probes']);

/** Flags that were given although nothing in this build acts on them. */
export function unbuiltFlags(config: Config): string[] {
  return config.given.filter((name) => UNBUILT.has(name)).map((name) => `--${name}`);
}

/** Reads and checks everything; never throws. */
export function readConfig(sources: ConfigSources): ConfigResult {
  const env = sources.env ?? process.env;
  const flags = readFlags(FLAGS, sources.argv ?? process.argv.slice(2), env);
  if (flags.help) {
    const usage = `Usage: agent [flags]\n\n${flagHelp(FLAGS)}`;
    return { kind: 'print', text: `${usage}\n\nAGENT_TOKEN holds the token for the edge.` };
  }
  if (flags.version) return { kind: 'print', text: `agent ${manifest.version}` };
  const faults = [...flags.faults];
  const config = build(new FlagReader(flags, faults), env, {
    readText: sources.readText ?? ((path) => readFileSync(path, 'utf8')),
    exists: sources.exists ?? existsSync,
    checkProviders: sources.checkProviders,
  });
  if (faults.length > 0) return { kind: 'faults', faults };
  return { kind: 'config', config: Object.freeze(config) };
}

type Files = Required<Pick<ConfigSources, 'readText' | 'exists' | 'checkProviders'>>;
type Env = Readonly<Record<string, string | undefined>>;

/** Every fault is pushed to the reader's list; the result is used only when there is none. */
function build(read: FlagReader, env: Env, files: Files): Config {
  const intervalMs = read.duration('provider-check-interval');
  if (intervalMs > 0 && intervalMs < CHECK_INTERVAL_MS_MIN) {
    read.fault('provider-check-interval', 'must be 0 or at least 10s');
  }
  return {
    providers: readProviders(read, files),
    edgeUrl: readEdgeUrl(read),
    clusterName: read.matching('cluster-name', CLUSTER_NAME, 'a DNS name of at most 63 characters'),
    proxyNamespace: read.has('proxy-namespace')
      ? read.matching('proxy-namespace', NAMESPACE, 'the name of a namespace')
      : undefined,
    leaderElect: read.boolean('leader-elect'),
    election: readElection(read),
    metricsBind: readBindAddress(read),
    providerCheckIntervalMs: intervalMs,
    providerCheckTimeoutMs: readCheckTimeout(read, intervalMs),
    gcIntervalMs: read.positiveDuration('gc-interval'),
    gcMinAgeMs: read.positiveDuration('gc-min-age'),
    gcAllowNamespaced: read.boolean('gc-allow-namespaced'),
    traceHealthProbes: read.boolean('trace-health-probes'),
    gcpWireLogFullPayloads: read.boolean('gcp-wire-log-full-payloads'),
    logLevel: read.oneOf('log-level', LOG_LEVELS),
    logFormat: read.oneOf('log-format', LOG_FORMATS),
    token: readToken(read, env, files),
    cluster: locateCluster(read, env, files),
    instance: env.POD_NAME || hostname(),
    homeNamespace: readHomeNamespace(env, files),
    version: manifest.version,
    given: read.given(),
  };
}

/** Each must leave room for the next: tries within the deadline, the deadline within the lease. */
function readElection(read: FlagReader): ElectionTiming {
  const leaseDurationMs = read.positiveDuration('leader-elect-lease-duration');
  const renewDeadlineMs = read.positiveDuration('leader-elect-renew-deadline');
  const retryPeriodMs = read.positiveDuration('leader-elect-retry-period');
  if (leaseDurationMs < LEASE_DURATION_MS_MIN) {
    read.fault('leader-elect-lease-duration', 'must be at least 1s');
  }
  if (renewDeadlineMs >= leaseDurationMs) {
    read.fault('leader-elect-renew-deadline', 'must be below --leader-elect-lease-duration');
  }
  if (retryPeriodMs >= renewDeadlineMs) {
    read.fault('leader-elect-retry-period', 'must be below --leader-elect-renew-deadline');
  }
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
}

function readProviders(read: FlagReader, files: Files): Config['providers'] {
  if (!read.has('providers-config')) return undefined;
  const path = read.text('providers-config');
  const content = tryRead(read, 'providers-config', path, files);
  if (content === undefined) return undefined;
  for (const problem of files.checkProviders(content)) {
    read.fault('providers-config', `${path}: ${problem}`);
  }
  return { path, text: content };
}

function readEdgeUrl(read: FlagReader): string {
  const given = read.required('edge-url');
  const url = URL.parse(given);
  const usable = url !== null && ['http:', 'https:'].includes(url.protocol);
  if (given !== '' && (!usable || url.search !== '' || url.hash !== '')) {
    read.fault('edge-url', 'must be an http or https URL without query');
  } else if (usable && (url.username !== '' || url.password !== '')) {
    read.fault('edge-url', 'must not hold credentials; the token goes into AGENT_TOKEN');
  }
  return given.replace(/\/+$/, '');
}

function readBindAddress(read: FlagReader): Config['metricsBind'] {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(
    read.text('metrics-bind-address'),
  );
  const port = Number(match?.[3]);
  if (match === null || port > 65535) {
    read.fault('metrics-bind-address', 'must be HOST:PORT or :PORT, such as :8080');
    return { host: undefined, port: 0 };
  }
  return { host: match[1] || match[2] || undefined, port };
}

function readCheckTimeout(read: FlagReader, intervalMs: number): number {
  const longestMs = intervalMs === 0 ? CHECK_TIMEOUT_MS_DEFAULT : intervalMs;
  if (!read.has('provider-check-timeout')) return Math.min(CHECK_TIMEOUT_MS_DEFAULT, longestMs);
  const timeoutMs = read.positiveDuration('provider-check-timeout');
  if (intervalMs > 0 && timeoutMs > intervalMs) {
    read.fault('provider-check-timeout', 'must not be above --provider-check-interval');
  }
  return timeoutMs;
}

function readToken(read: FlagReader, env: Env, files: Files): Config['token'] {
  const value = env.AGENT_TOKEN?.trim() ?? '';
  if (read.has('agent-token-file')) {
    const file = read.text('agent-token-file');
    const content = tryRead(read, 'agent-token-file', file, files);
    if (content?.trim() === '') read.fault('agent-token-file', `${file}: is empty`);
    return { file };
  }
  if (value === '') {
    read.fault('agent-token-file', 'required, unless AGENT_TOKEN holds the token for the edge');
  } else if (value.length < TOKEN_LENGTH_MIN || /\s/.test(value)) {
    read.faults.push(`AGENT_TOKEN: must be one word of at least ${TOKEN_LENGTH_MIN} characters`);
  }
  return { value };
}

/** KUBECONFIG, then the service account of the pod, then the user's own file. */
function locateCluster(read: FlagReader, env: Env, files: Files): Config['cluster'] {
  const paths = (env.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '');
  if (paths.length > 0) return { kind: 'kubeconfig', paths };
  const host = env.KUBERNETES_SERVICE_HOST;
  if (host && files.exists(SERVICE_ACCOUNT_TOKEN)) {
    return { kind: 'in-cluster', host, port: env.KUBERNETES_SERVICE_PORT || '443' };
  }
  const own = join(env.HOME ?? '', '.kube', 'config');
  if (!files.exists(own)) {
    read.faults.push('KUBECONFIG: no cluster is known; name a kubeconfig, or run in a pod');
  }
  return { kind: 'kubeconfig', paths: [own] };
}

/** As the pod is told, as its service account says, or as the manifests have it. */
function readHomeNamespace(env: Env, files: Files): string {
  if (env.POD_NAMESPACE) return env.POD_NAMESPACE;
  const file = `${SERVICE_ACCOUNT}/namespace`;
  return (files.exists(file) ? files.readText(file).trim() : '') || HOME_NAMESPACE_DEFAULT;
}

function tryRead(read: FlagReader, flag: string, path: string, files: Files): string | undefined {
  try {
    return files.readText(path);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    read.fault(flag, `cannot be read: ${why}`);
    return undefined;
  }
}
