/**
 * The official client behind `ComputeApi`, over REST. It is loaded at the first call (it takes half a
 * second and 140 MB), by the paths of the few services that are used: the package's own index would
 * load two hundred. Its types, 33 MB, are left out: what comes back is parsed here.
 *
 * `innerApiCalls` are what the client's own methods call. They answer with the API's resource as it
 * is, where the methods wrap an operation and lose what an aggregated list could not read; and they
 * print no requests, which the methods do when GOOGLE_SDK_NODE_LOGGING is set.
 */
import { createRequire } from 'node:module';
import { z } from 'zod';
import { orAborted } from '#agent/runtime/deadline.ts';
import { type GcpBlock, isLoopback } from '../config-gcp.ts';
import { type ComputeApi, ComputeError } from './compute-api.ts';
import {
  aggregatedPageSchema,
  firewallSchema,
  instanceSchema,
  operationSchema,
  regionSchema,
} from './resources.ts';
import { createTransport, type Transport, type TransportOptions } from './transport.ts';

const SCOPE = 'https://www.googleapis.com/auth/compute';
const SERVICES = {
  instances: ['instances_client', 'InstancesClient'],
  zoneOperations: ['zone_operations_client', 'ZoneOperationsClient'],
  firewalls: ['firewalls_client', 'FirewallsClient'],
  regions: ['regions_client', 'RegionsClient'],
} as const;
type Service = keyof typeof SERVICES;

/** A single answer takes a second or two; a list of many zones, some more. */
const DEADLINE_MS = 20_000;
const LIST_DEADLINE_MS = 60_000;
const RAW_PAYLOAD = Symbol.for('google-gax.rawHttpResponsePayload');

type ApiCall = (request: object, options: object) => Promise<unknown[]>;
interface LibraryClient {
  readonly innerApiCalls: Readonly<Record<string, ApiCall>>;
  initialize(): Promise<unknown>;
  close(): Promise<void>;
}

/** One client of a configured provider. Dials nothing before the first call. */
export function createComputeClient(block: GcpBlock, options: TransportOptions): ComputeApi {
  const { project } = block;
  const clients = new Map<Service, Promise<LibraryClient>>();
  let closed = false;
  let transport: Promise<Transport> | undefined;

  /** Credentials that could not be had are looked for again at the next call. */
  function openTransport(): Promise<Transport> {
    transport ??= findCredentials(block).then((inner) => createTransport(inner, options));
    transport.catch(() => {
      transport = undefined;
    });
    return transport;
  }

  function open(service: Service): Promise<LibraryClient> {
    const opened =
      clients.get(service) ?? openTransport().then((auth) => build(service, auth, block));
    clients.set(service, opened);
    opened.catch(() => clients.delete(service));
    return opened;
  }

  async function call(
    service: Service,
    method: string,
    request: object,
    { signal, deadlineMs = DEADLINE_MS, secret }: CallOptions,
  ): Promise<unknown[]> {
    if (closed) throw new ComputeError('the client is closed', {});
    if (signal.aborted) throw aborted(signal);
    const answer = open(service).then((client) => {
      if (signal.aborted) throw aborted(signal);
      const apiCall = client.innerApiCalls[method];
      if (apiCall === undefined) throw new Error(`the client has no ${service}.${method}`);
      const limits = { timeout: deadlineMs, retry: null, autoPaginate: false, signal };
      return apiCall({ project, ...request }, limits);
    });
    try {
      // Also while credentials are fetched, which know no signal.
      return await orAborted(answer, signal);
    } catch (error) {
      if (signal.aborted) throw aborted(signal);
      throw toComputeError(error, secret);
    }
  }

  const operation = async (answer: Promise<unknown[]>) => parse(operationSchema, (await answer)[0]);
  /** Paged calls answer with the items, the next request and the page as it came. */
  const page = async (answer: Promise<unknown[]>) => (await answer)[2];

  return {
    insertInstance({ zone, requestId }, instance, signal) {
      const request = { zone, requestId, instanceResource: instance };
      const secret = userDataOf(instance);
      return operation(call('instances', 'insert', request, { signal, ...secret }));
    },
    async getInstance({ zone, name }, signal) {
      const [found] = await call('instances', 'get', { zone, instance: name }, { signal });
      return parse(instanceSchema, found);
    },
    deleteInstance: ({ zone, name }, signal) =>
      operation(call('instances', 'delete', { zone, instance: name }, { signal })),
    setLabels({ zone, name }, instancesSetLabelsRequestResource, signal) {
      const request = { zone, instance: name, instancesSetLabelsRequestResource };
      return operation(call('instances', 'setLabels', request, { signal }));
    },
    async listInstances(query, signal) {
      const limits = { signal, deadlineMs: LIST_DEADLINE_MS };
      return parse(
        aggregatedPageSchema,
        await page(call('instances', 'aggregatedList', query, limits)),
      );
    },
    async listZoneOperations(query, signal) {
      const request = { ...query, orderBy: 'creationTimestamp desc' };
      const found = await page(call('zoneOperations', 'list', request, { signal }));
      return parse(itemsOf(operationSchema), found).items;
    },
    waitZoneOperation: (at, signal) => operation(call('zoneOperations', 'wait', at, { signal })),
    async getFirewall(firewall, signal) {
      const [found] = await call('firewalls', 'get', { firewall }, { signal });
      return parse(firewallSchema, found);
    },
    insertFirewall: (firewallResource, signal) =>
      operation(call('firewalls', 'insert', { firewallResource }, { signal })),
    patchFirewall: (firewall, firewallResource, signal) =>
      operation(call('firewalls', 'patch', { firewall, firewallResource }, { signal })),
    async listRegions(signal) {
      return parse(itemsOf(regionSchema), await page(call('regions', 'list', {}, { signal })))
        .items;
    },
    async close() {
      closed = true;
      const opened = await Promise.allSettled(clients.values());
      for (const client of opened) if (client.status === 'fulfilled') await client.value.close();
    },
  };
}

interface CallOptions {
  readonly signal: AbortSignal;
  readonly deadlineMs?: number;
  /** Must not come back in an error. */
  readonly secret?: string;
}

const require = createRequire(import.meta.url);

/** The library is untyped here: the two places that load it say what they use of it. */
async function build(
  service: Service,
  authClient: Transport,
  { endpoint, project }: GcpBlock,
): Promise<LibraryClient> {
  const [file, name] = SERVICES[service];
  const loaded: Record<string, new (options: object) => LibraryClient> = require(
    `@google-cloud/compute/build/src/v1/${file}`,
  );
  const Client = loaded[name];
  if (Client === undefined) throw new Error(`@google-cloud/compute has no ${name}`);
  const client = new Client({ projectId: project, fallback: true, authClient, ...at(endpoint) });
  await client.initialize();
  return client;
}

function at(endpoint: string | undefined): object {
  if (endpoint === undefined) return {};
  const { protocol, hostname, port } = new URL(endpoint);
  const isPlain = protocol === 'http:';
  return {
    apiEndpoint: hostname,
    port: Number(port) || (isPlain ? 80 : 443),
    protocol: isPlain ? 'http' : 'https',
  };
}

/** Application default credentials; none for an emulator, which must not get any. */
async function findCredentials({ endpoint }: GcpBlock): Promise<Transport> {
  const library: {
    PassThroughClient: new () => Transport;
    GoogleAuth: new (options: object) => { getClient(): Promise<Transport> };
  } = require('google-auth-library');
  const url = endpoint === undefined ? undefined : new URL(endpoint);
  if (url?.protocol === 'http:' && isLoopback(url.hostname)) return new library.PassThroughClient();
  return new library.GoogleAuth({ scopes: [SCOPE] }).getClient();
}

function parse<T extends z.ZodType>(schema: T, answer: unknown): z.infer<T> {
  const parsed = schema.safeParse(answer);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue?.path.join('.') ?? '';
  throw new ComputeError(`the API answered something else: ${where}: ${issue?.message ?? ''}`, {});
}

function itemsOf<T extends z.ZodType>(item: T) {
  return z.object({
    items: z
      .array(item)
      .nullish()
      .transform((items) => items ?? []),
  });
}

function aborted(signal: AbortSignal): ComputeError {
  const { reason } = signal;
  return new ComputeError(reason instanceof Error ? reason.message : 'aborted', {});
}

const failureSchema = z.object({
  error: z.object({
    message: z.string().optional(),
    errors: z.array(z.object({ reason: z.string().optional() })).optional(),
    details: z.array(z.object({ reason: z.string().optional() })).optional(),
  }),
});

/** `error` is not kept as a cause: it holds the request, and that may hold user-data. */
function toComputeError(error: unknown, secret: string | undefined): Error {
  if (error instanceof ComputeError) return error;
  const { message } = error instanceof Error ? error : { message: String(error) };
  const status = numberAt(error, 'httpStatusCode');
  const failure = failureSchema.safeParse(payloadOf(error));
  if (status === undefined || !failure.success) {
    const told = status === undefined ? message : `HTTP ${status} without an error of the API`;
    return new ComputeError(without(told, secret), { status });
  }
  const { errors = [], details = [], message: said = '' } = failure.data.error;
  const reasons = [...errors, ...details].flatMap(({ reason }) => (reason ? [reason] : []));
  return new ComputeError(without(said || message, secret), { status, reasons });
}

/** The client keeps the answer of a failed call under a symbol, as text or parsed. */
function payloadOf(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) return undefined;
  const payload: unknown = Reflect.get(error, RAW_PAYLOAD);
  if (typeof payload !== 'string') return payload;
  try {
    return JSON.parse(payload);
  } catch {
    return undefined;
  }
}

function numberAt(error: unknown, key: string): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const value: unknown = Reflect.get(error, key);
  return typeof value === 'number' ? value : undefined;
}

const userDataSchema = z.object({
  metadata: z.object({ items: z.array(z.object({ key: z.string(), value: z.string() })) }),
});

function userDataOf(instance: object): { secret?: string } {
  const parsed = userDataSchema.safeParse(instance);
  const found = parsed.data?.metadata.items.find(({ key }) => key === 'user-data');
  return found === undefined ? {} : { secret: found.value };
}

/** Some errors quote the request. */
function without(message: string, secret: string | undefined): string {
  if (secret === undefined || secret === '') return message;
  const quoted = JSON.stringify(secret).slice(1, -1);
  return message.replaceAll(secret, '<user-data>').replaceAll(quoted, '<user-data>');
}
