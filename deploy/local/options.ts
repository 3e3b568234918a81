/** The flags of `npm start` (contract §5) and the few environment variables that it reads. */
import { parseArgs } from 'node:util';
import { StartFault } from './fault.ts';

export const PROXIES_MAX = 500;
const PORT_MAX = 65535;

/** Exit code for a command line that cannot be understood, as shells have it. */
const USAGE_EXIT_CODE = 2;

export interface StartOptions {
  /** Stop after the first fetched page. */
  readonly once: boolean;
  /** One JSON line for each step on the standard output. */
  readonly json: boolean;
  /** Ports; 0 takes a free one. */
  readonly edgePort: number;
  readonly apiPort: number;
  readonly metricsPort: number;
  readonly stateDir: string;
  /** How many sample proxies there should be. */
  readonly proxies: number;
  /** A cluster to use in place of the embedded control plane. */
  readonly kubeconfig?: string;
  /** Folder with `kube-apiserver` and `etcd` to use in place of the embedded control plane. */
  readonly assetsDir?: string;
  /** The Squid to run; found on the machine when unset. */
  readonly squid?: string;
  readonly help: boolean;
}

export const HELP = `Usage: npm start -- [flags]

Runs the whole system on this machine and fetches a page through a leased proxy.

  --once               exit after the first fetched page: 0, or non-zero with the reason
  --json               one JSON line for each step on standard output
  --edge-port=8787     port of the edge on 127.0.0.1 (0: any free port)
  --api-port=6443      port of the control plane on 127.0.0.1 (0: any free port)
  --metrics-port=8080  port of the agent's metrics on 127.0.0.1 (0: any free port)
  --state-dir=.local   folder for kubeconfig, tokens, logs and storage
  --proxies=3          how many sample proxies to apply
  --kubeconfig=PATH    use that cluster in place of the embedded control plane
  --help               show this

Environment:
  KUBEBUILDER_ASSETS   folder with kube-apiserver and etcd, used in place of the embedded
                       control plane
  SQUID                path of the squid program, if it is not where it usually is
`;

/** Parses a command line; throws a `StartFault` that lists every fault at once. */
export function parseOptions(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): StartOptions {
  const problems: string[] = [];
  const values = parseFlags(args, problems);
  const text = (name: string) => (typeof values[name] === 'string' ? values[name] : undefined);
  const options: StartOptions = {
    once: values['once'] === true,
    json: values['json'] === true,
    edgePort: integer('--edge-port', text('edge-port'), 8787, PORT_MAX, problems),
    apiPort: integer('--api-port', text('api-port'), 6443, PORT_MAX, problems),
    metricsPort: integer('--metrics-port', text('metrics-port'), 8080, PORT_MAX, problems),
    stateDir: path('--state-dir', text('state-dir'), problems) ?? '.local',
    proxies: integer('--proxies', text('proxies'), 3, PROXIES_MAX, problems),
    help: values['help'] === true,
    ...defined('kubeconfig', path('--kubeconfig', text('kubeconfig'), problems)),
    ...defined('assetsDir', env['KUBEBUILDER_ASSETS'] || undefined),
    ...defined('squid', env['SQUID'] || undefined),
  };
  problems.push(...conflicts(options));
  if (problems.length > 0) {
    const lines = [...problems, 'See npm start -- --help'];
    throw new StartFault(lines.join('\n'), { exitCode: USAGE_EXIT_CODE });
  }
  return options;
}

function conflicts(options: StartOptions): string[] {
  const problems: string[] = [];
  if (options.proxies === 0) problems.push('--proxies: must be at least 1');
  const ports = [options.edgePort, options.apiPort, options.metricsPort].filter((p) => p !== 0);
  if (new Set(ports).size < ports.length) {
    problems.push('--edge-port, --api-port and --metrics-port: must differ from each other');
  }
  return problems;
}

type Flags = Record<string, string | boolean | undefined>;

function parseFlags(args: readonly string[], problems: string[]): Flags {
  const config = {
    once: { type: 'boolean' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
    'edge-port': { type: 'string' },
    'api-port': { type: 'string' },
    'metrics-port': { type: 'string' },
    'state-dir': { type: 'string' },
    proxies: { type: 'string' },
    kubeconfig: { type: 'string' },
  } as const;
  try {
    return { ...parseArgs({ args: [...args], options: config, strict: true }).values };
  } catch (error) {
    // The first sentence of Node's message names the flag; the rest is advice on `--`.
    const message = error instanceof Error ? error.message : String(error);
    problems.push(message.split('. ', 1)[0] ?? message);
    return {};
  }
}

function integer(
  flag: string,
  text: string | undefined,
  fallback: number,
  max: number,
  problems: string[],
): number {
  if (text === undefined) return fallback;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 0 && value <= max) return value;
  problems.push(`${flag}: must be a whole number from 0 to ${max}, not "${text}"`);
  return fallback;
}

function path(flag: string, text: string | undefined, problems: string[]): string | undefined {
  if (text === '') problems.push(`${flag}: must not be empty`);
  return text;
}

function defined<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  const entry: { [P in K]?: string } = {};
  if (value !== undefined) entry[key] = value;
  return entry;
}
