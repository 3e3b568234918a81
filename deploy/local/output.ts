/** What a start tells: readable lines for a person, or one JSON line for each step. */
import { relative, resolve } from 'node:path';

export interface ProxyRow {
  readonly proxy: string;
  readonly phase: string;
  readonly ip: string;
  readonly egressIP: string;
  readonly latencyMillis?: number;
}

export type Step =
  | { readonly step: 'starting'; readonly stateDir: string }
  | { readonly step: 'leftovers'; readonly ended: number }
  | { readonly step: 'control-plane'; readonly url: string; readonly kubeconfig: string }
  | { readonly step: 'edge'; readonly url: string }
  | { readonly step: 'agent'; readonly metrics: string }
  | { readonly step: 'applied'; readonly proxies: readonly string[] }
  | { readonly step: 'ready'; readonly proxies: readonly ProxyRow[] }
  | {
      readonly step: 'leased';
      readonly leaseID: string;
      readonly proxy: string;
      readonly url: string;
      readonly expiresAt: string;
    }
  | {
      readonly step: 'fetched';
      readonly status: number;
      readonly egressIP: string;
      readonly leaseID: string;
      readonly proxy: string;
      readonly namespace: string;
    }
  | {
      readonly step: 'restarting';
      readonly part: string;
      readonly reason: string;
      readonly inMs: number;
    }
  | { readonly step: 'trouble'; readonly part: string; readonly message: string }
  | { readonly step: 'stopping' }
  | { readonly step: 'failed'; readonly message: string };

export interface Output {
  step(step: Step): void;
}

/** JSON lines; a step's fields are its own, and every line names its step first. */
export function jsonOutput(write: (text: string) => void): Output {
  return { step: (step) => write(`${JSON.stringify(step)}\n`) };
}

export interface HumanOutputOptions {
  /** Milliseconds since the start of the program. */
  elapsedMs(): number;
  /** For the command lines printed at the end; undefined: none are printed. */
  readonly tokensFile: string | undefined;
}

/** Readable lines, each with the seconds since the start. */
export function humanOutput(write: (text: string) => void, options: HumanOutputOptions): Output {
  let edgeUrl = '';
  let kubeconfig = '';
  const line = (text: string) => {
    write(`${(options.elapsedMs() / 1000).toFixed(1).padStart(5)}s  ${text}\n`);
  };
  return {
    step(step) {
      if (step.step === 'edge') edgeUrl = step.url;
      if (step.step === 'control-plane') kubeconfig = step.kubeconfig;
      if (step.step === 'ready') {
        line('proxies are Ready:');
        write(`\n${table(step.proxies)}\n\n`);
        return;
      }
      const text = sentence(step);
      if (text !== undefined) line(text);
      if (step.step === 'fetched' && options.tokensFile !== undefined) {
        write(tryNext(edgeUrl, kubeconfig, options.tokensFile));
      }
    },
  };
}

function sentence(step: Exclude<Step, { step: 'ready' }>): string | undefined {
  switch (step.step) {
    case 'starting':
      return `starting; state is kept in ${step.stateDir}`;
    case 'leftovers':
      return `ended ${step.ended} process(es) that an earlier start left`;
    case 'control-plane':
      return `control plane  ${step.url}   kubeconfig: ${near(step.kubeconfig)}`;
    case 'edge':
      return `edge           ${step.url}`;
    case 'agent':
      return `agent          ${step.metrics}`;
    case 'applied':
      return `applied ${step.proxies.length} Proxy object(s): ${abridge(step.proxies)}`;
    case 'leased':
      return `leased ${step.proxy} as ${step.leaseID}, until ${step.expiresAt}: ${step.url}`;
    case 'fetched':
      return `fetched a page through it: status ${step.status}, seen from ${step.egressIP}`;
    case 'restarting':
      return `the ${step.part} ended (${step.reason}); starting it again in ${step.inMs / 1000} s`;
    case 'trouble':
      return `${step.part}: ${step.message}`;
    case 'stopping':
      return 'stopping';
    case 'failed':
      return undefined;
  }
}

const NAMES_SHOWN_MAX = 5;
const ROWS_SHOWN_MAX = 20;

function abridge(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_SHOWN_MAX).join(', ');
  return names.length > NAMES_SHOWN_MAX ? `${shown}, …` : shown;
}

/** Columns as wide as they need to be. */
export function table(rows: readonly ProxyRow[]): string {
  const cells = rows
    .slice(0, ROWS_SHOWN_MAX)
    .map(({ proxy, phase, ip, egressIP, latencyMillis }) => [
      proxy,
      phase,
      ip,
      egressIP,
      latencyMillis === undefined ? '' : `${latencyMillis} ms`,
    ]);
  const all = [['PROXY', 'PHASE', 'IP', 'EGRESS IP', 'LATENCY'], ...cells];
  const widths = all[0]?.map((_, column) =>
    Math.max(...all.map((row) => row[column]?.length ?? 0)),
  );
  const text = all.map((row) =>
    `       ${row.map((cell, column) => cell.padEnd(widths?.[column] ?? 0)).join('   ')}`.trimEnd(),
  );
  if (rows.length > ROWS_SHOWN_MAX) text.push(`       and ${rows.length - ROWS_SHOWN_MAX} more`);
  return text.join('\n');
}

/** A path as short as it can be typed from here. */
function near(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return fromHere.startsWith('..') ? path : fromHere;
}

function tryNext(edgeUrl: string, kubeconfig: string, tokensFile: string): string {
  const token = `$(node -p "require('${resolve(tokensFile)}').discovery")`;
  const post = `curl -d '{"ttlSeconds":60}' -H 'Content-Type: application/json'`;
  return [
    '',
    '       Everything is up; Ctrl-C ends it. Try:',
    '',
    `       ${post} -H "Authorization: Bearer ${token}" ${edgeUrl}/v1/leases`,
    `       kubectl --kubeconfig ${near(kubeconfig)} get proxies -o wide`,
    '',
    '',
  ].join('\n');
}
