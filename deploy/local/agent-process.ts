/** The agent as a process: the very program that runs in a cluster, with its own credentials. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type Part, type PartDeps, startPart } from './part.ts';
import { LOOPBACK } from './ports.ts';
import type { StateDir, Tokens } from './state-dir.ts';

/** Name of this cluster at the edge. */
export const CLUSTER_NAME = 'local';
/** The provider that the samples name. */
const PROVIDER_NAME = 'local';
const IMAGE = 'ubuntu/squid:6.6-24.04_edge';

/** Exit code of the agent for a configuration that cannot work. */
const CONFIG_EXIT_CODE = 2;

export interface AgentOptions {
  /** Root of the repository. */
  readonly root: string;
  readonly edgeUrl: string;
  readonly metricsPort: number;
  readonly kubeconfig: string;
  readonly state: StateDir;
  readonly tokens: Tokens;
  /** Environment of the start, which the process inherits. */
  readonly env: Readonly<Record<string, string>>;
}

/** Starts the agent and keeps it running. */
export function startAgent(deps: PartDeps, options: AgentOptions): Part {
  const { state, env } = options;
  writeFileSync(state.providers, providersYaml());
  // A flag of the agent that happens to be set in this shell is not meant for this stack.
  const inherited = Object.entries(env).filter(([name]) => !name.startsWith('AGENT_'));
  return startPart(deps, {
    name: 'agent',
    command: process.execPath,
    args: [join(options.root, 'agent', 'main.ts'), ...agentArgs(options)],
    cwd: options.root,
    env: {
      ...Object.fromEntries(inherited),
      AGENT_TOKEN: options.tokens.agent,
      KUBECONFIG: options.kubeconfig,
    },
    isFinal: (exit) => exit.exitCode === CONFIG_EXIT_CODE,
  });
}

function agentArgs(options: AgentOptions): string[] {
  return [
    `--providers-config=${options.state.providers}`,
    `--edge-url=${options.edgeUrl}`,
    `--cluster-name=${CLUSTER_NAME}`,
    `--metrics-bind-address=${LOOPBACK}:${options.metricsPort}`,
  ];
}

function providersYaml(): string {
  const provider = { name: PROVIDER_NAME, type: 'kubernetes', kubernetes: { image: IMAGE } };
  return stringify({ providers: [provider] });
}
