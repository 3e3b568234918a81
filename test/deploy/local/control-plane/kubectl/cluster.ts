/** A control plane with the product's manifests, and kubectl run against it. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ControlPlaneUser } from '#deploy/local/control-plane/control-plane.ts';
import { startTestServer, type TestServer } from '../http/api-client.ts';

export interface Run {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface KubectlCluster extends AsyncDisposable {
  readonly server: TestServer;
  /** Runs to the end; never throws for an exit code. */
  kubectl(args: readonly string[], options?: RunOptions): Promise<Run>;
  /** The same, failing the test unless it ends with 0; returns its output. */
  ok(...args: string[]): Promise<string>;
  /** Applies a manifest from standard input. */
  apply(manifest: string, ...args: string[]): Promise<string>;
  /** Resolves when the server has answered another request whose log line matches. */
  answered(line: RegExp): Promise<void>;
  /** A kubectl that keeps running, such as `get -w`. */
  follow(...args: string[]): Following;
}

export interface RunOptions {
  readonly stdin?: string;
  readonly user?: ControlPlaneUser;
}

export interface Following {
  /** Resolves when the output so far matches; rejects with it when kubectl ends before. */
  until(pattern: RegExp): Promise<string>;
  stop(): Promise<void>;
}

const CRDS = new URL('../../../../../deploy/crds/', import.meta.url).pathname;
const RBAC = new URL('../../../../../deploy/rbac/', import.meta.url).pathname;

export async function startKubectlCluster(program: string): Promise<KubectlCluster> {
  const log = new EventEmitter();
  const server = await startTestServer({ log: (line) => log.emit('line', line) });
  const home = mkdtempSync(join(tmpdir(), 'kubectl-'));
  const kubeconfig = (user: ControlPlaneUser) => join(home, `${user}.kubeconfig`);
  for (const user of ['admin', 'agent'] as const) {
    writeFileSync(kubeconfig(user), server.controlPlane.kubeconfig(user));
  }
  const start = (args: readonly string[], user: ControlPlaneUser = 'admin') =>
    spawn(program, args, { env: { ...process.env, HOME: home, KUBECONFIG: kubeconfig(user) } });
  const kubectl = (args: readonly string[], { stdin, user }: RunOptions = {}) =>
    finish(start(args, user), stdin);
  const ok = async (...args: string[]) => expectSuccess(args, await kubectl(args));
  await ok('apply', '-f', CRDS);
  await ok('create', 'namespace', 'crawl-system');
  await ok('apply', '-f', RBAC);
  return {
    server,
    kubectl,
    ok,
    apply: async (manifest, ...args) => {
      const all = ['apply', '-f', '-', ...args];
      return expectSuccess(all, await kubectl(all, { stdin: manifest }));
    },
    answered: (pattern) =>
      new Promise((resolve) => {
        const look = (line: string) => {
          if (!pattern.test(line)) return;
          log.off('line', look);
          resolve();
        };
        log.on('line', look);
      }),
    follow: (...args) => follow(start(args)),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function finish(child: ChildProcessWithoutNullStreams, stdin = ''): Promise<Run> {
  const closed = once(child, 'close');
  const out = collect(child.stdout);
  const err = collect(child.stderr);
  // kubectl may end without having read its input.
  child.stdin.on('error', () => undefined);
  child.stdin.end(stdin);
  await closed;
  return { code: child.exitCode, out: out(), err: err() };
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk) => {
    text += chunk;
  });
  return () => text;
}

function expectSuccess(args: readonly string[], { code, out, err }: Run): string {
  if (code === 0) return out;
  throw new Error(`kubectl ${args.join(' ')} ended with ${code}:\n${out}${err}`);
}

function follow(child: ChildProcessWithoutNullStreams): Following {
  const out = collect(child.stdout);
  const err = collect(child.stderr);
  return {
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (pattern.test(out())) resolve(out());
        };
        child.stdout.on('data', look);
        child.once('close', () => reject(new Error(`kubectl ended first:\n${out()}${err()}`)));
        look();
      }),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const closed = once(child, 'close');
      child.kill();
      await closed;
    },
  };
}

/** A Proxy manifest; `spec` is the YAML flow content between braces. */
export function proxyManifest(name: string, spec = ''): string {
  const endpoint = 'mode: External, endpoint: {host: 10.0.0.1, port: 3128}';
  return [
    'apiVersion: crawl.example.com/v1alpha1',
    'kind: Proxy',
    `metadata: {name: ${name}}`,
    `spec: {${spec === '' ? endpoint : `${endpoint}, ${spec}`}}`,
    '',
  ].join('\n');
}
