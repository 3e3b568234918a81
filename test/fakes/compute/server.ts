/**
 * Compute Engine as an HTTP server on this machine, for the official client: the REST API of the
 * methods that this project calls, over projects in memory whose time is the caller's.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, systemClock } from '#shared/clock.ts';
import { ApiFailure, notFound } from './api-failure.ts';
import { type Fault, Faults } from './faults.ts';
import { FakeProject, type Hypervisor } from './project.ts';
import { answer } from './routes.ts';
import { type Json, objectOf } from './validate.ts';

export interface ComputeOptions {
  readonly projects?: readonly string[];
  readonly clock?: Pick<Clock, 'now' | 'sleep'>;
  readonly operationMs?: number;
  readonly bootMs?: number;
  readonly hypervisor?: Hypervisor;
  /** What requests have to carry as a bearer token; absent: no credentials are asked for. */
  readonly token?: string;
}

export interface ComputeRequest {
  readonly method: string;
  /** Path without `/compute/v1`, and query. */
  readonly target: string;
  readonly body: string;
}

/** What a test decides about a request before it is looked at, and after it was carried out. */
export interface ComputeHooks {
  before?(request: ComputeRequest): 'drop' | undefined | Promise<'drop' | undefined>;
  taken?(request: ComputeRequest): 'drop' | undefined;
  answered?(request: ComputeRequest): void;
}

export interface FakeCompute {
  /** For `gcp.endpoint`. */
  readonly endpoint: string;
  readonly faults: Faults;
  /** Every request so far. */
  readonly requests: readonly ComputeRequest[];
  hooks: ComputeHooks;
  project(name?: string): FakeProject;
  close(): Promise<void>;
}

export const PROJECT = 'crawl-test';
export const ZONES = ['europe-west1-b', 'europe-west1-c', 'us-east1-b'] as const;
export const MACHINE_TYPES = ['e2-micro', 'e2-small', 'n2-standard-2'] as const;
export const IMAGE = 'projects/debian-cloud/global/images/family/debian-13';

const PREFIX = /^\/compute\/v1\/projects\/([^/]+)\/(.+)$/;

export async function startFakeCompute(options: ComputeOptions = {}): Promise<FakeCompute> {
  const { clock = systemClock, projects = [PROJECT] } = options;
  const faults = new Faults();
  const requests: ComputeRequest[] = [];
  const all = new Map(projects.map((name) => [name, projectWith(name, options, clock)]));
  const fake: { hooks: ComputeHooks } = { hooks: {} };

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const url = new URL(incoming.url ?? '/', 'http://fake');
    const method = incoming.method ?? 'GET';
    const text = await textOf(incoming);
    const target = url.pathname.replace(/^\/compute\/v1/, '') + url.search;
    const request = { method, target, body: text };
    requests.push(request);
    if ((await fake.hooks.before?.(request)) === 'drop') return void outgoing.destroy();
    const fault = faults.take(method, url.pathname);
    if (fault !== undefined && (await standsInTheWay(fault, outgoing))) return;
    const { status, body } = await carryOut(incoming, url, method, text);
    if (fault?.kind === 'lost' || fake.hooks.taken?.(request) === 'drop') {
      return void outgoing.destroy();
    }
    outgoing.writeHead(status, { 'content-type': 'application/json; charset=UTF-8' });
    await new Promise<void>((resolve) => {
      outgoing.once('close', resolve);
      outgoing.end(JSON.stringify(body), () => resolve());
    });
    fake.hooks.answered?.(request);
  }

  async function carryOut(
    incoming: IncomingMessage,
    url: URL,
    method: string,
    text: string,
  ): Promise<{ status: number; body: object }> {
    try {
      if (options.token && incoming.headers.authorization !== `Bearer ${options.token}`) {
        throw new ApiFailure(401, 'authError', 'Invalid Credentials');
      }
      const [, name = '', path = ''] = PREFIX.exec(url.pathname) ?? [];
      const project = all.get(name);
      if (project === undefined) throw notFound(`projects/${name}`);
      const call = { method, path, query: url.searchParams, body: bodyOf(text) };
      if (path.endsWith('/wait')) await clock.sleep(project.options.operationMs);
      return { status: 200, body: await answer(project, call) };
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      return { status: error.status, body: error.body };
    }
  }

  const server = createServer((incoming, outgoing) => {
    outgoing.on('error', () => {});
    handle(incoming, outgoing).catch((error: unknown) => {
      outgoing.writeHead(500).end(JSON.stringify({ error: { message: String(error) } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(fake, {
    endpoint: `http://127.0.0.1:${port}`,
    faults,
    requests,
    project(name: string = projects[0] ?? PROJECT) {
      const found = all.get(name);
      if (found === undefined) throw new Error(`no project ${name}`);
      found.settle();
      return found;
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  });
}

function projectWith(
  project: string,
  { operationMs = 0, bootMs = 0, hypervisor }: ComputeOptions,
  clock: Pick<Clock, 'now'>,
): FakeProject {
  return new FakeProject({
    project,
    zones: ZONES,
    machineTypes: MACHINE_TYPES,
    images: [IMAGE, `projects/${project}/global/images/own`],
    networks: ['default', 'crawl'],
    nowMs: () => clock.now(),
    operationMs,
    bootMs,
    ...(hypervisor === undefined ? {} : { hypervisor }),
  });
}

/** Whether the fault is all that the client gets. */
async function standsInTheWay(fault: Fault, outgoing: ServerResponse): Promise<boolean> {
  switch (fault.kind) {
    case 'cut':
      outgoing.destroy();
      return true;
    case 'silent':
      return true;
    case 'html':
      outgoing.writeHead(fault.status, { 'content-type': 'text/html' });
      outgoing.end(`<html><title>${fault.status}</title></html>`);
      return true;
    case 'refuse': {
      const { status, reason = 'backendError', message = 'refused' } = fault;
      outgoing.writeHead(status, { 'content-type': 'application/json' });
      outgoing.end(JSON.stringify(new ApiFailure(status, reason, message).body));
      return true;
    }
    case 'slow':
      await fault.release;
      return false;
    case 'lost':
      return false;
  }
}

function bodyOf(text: string): Json {
  if (text === '') return {};
  try {
    return objectOf(JSON.parse(text));
  } catch {
    throw new ApiFailure(400, 'parseError', 'Parse Error');
  }
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
