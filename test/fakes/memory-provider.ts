/**
 * A provider whose machines are entries of a map, slow and forgetful in the ways that real ones
 * are: machines take polls to come up and to go, names are unique within a zone only, and ids hold
 * the zone. It also keeps the books that tests look at.
 */
import {
  ProviderError,
  type ProviderErrorClass,
  type ProviderOp,
} from '#agent/providers/errors.ts';
import {
  type CreateRequest,
  type Instance,
  type InstanceState,
  type Mark,
  PartialListError,
  type Provider,
} from '#agent/providers/provider.ts';

export interface Machine {
  readonly id: string;
  readonly name: string;
  readonly request: CreateRequest;
  readonly createdAtMs: number;
  readonly ip: string;
  /** Overrides what it would say by itself. */
  forced?: InstanceState;
  /** A state that the provider does not know, in the backend's own word. */
  unknown?: string;
  /** It goes on being deleted for as long as this is set. */
  held?: boolean;
  /** Polls until it runs. */
  startsIn: number;
  /** Its mark was taken off. */
  disowned?: boolean;
  /** Polls until it is gone, once it is deleted. */
  goesIn?: number;
}

export interface MemoryProviderOptions {
  readonly name?: string;
  /** Where the machines are; shared by all providers that are given the same map. */
  readonly machines?: Map<string, Machine>;
  /** The backend takes requests and never answers. */
  readonly silent?: boolean;
  /** Polls that a machine needs to come up, and to go away. */
  readonly polls?: number;
  readonly nowMs?: () => number;
  /** Address of the machine that was made as the n-th. */
  readonly addressOf?: (made: number) => string;
  /** Called around every request; a throw stands for a crash of the caller. */
  readonly around?: <T>(op: string, call: () => Promise<T>) => Promise<T>;
}

const ID_PATTERN = /^zones\/[a-z0-9-]+\/[a-z0-9-]+$/;

export class MemoryProvider implements Provider {
  readonly name: string;
  readonly type = 'memory';
  readonly machines: Map<string, Machine>;
  /** Every request, in order: `create zones/a/proxy-…`. */
  readonly requests: string[] = [];
  /** Machines that were made, deleted ones included. */
  made = 0;
  /** The next creates are accepted, and come to nothing for this reason. */
  readonly lateFailures: ProviderErrorClass[] = [];
  /** Zones that no list can read at present. */
  readonly unread = new Set<string>();
  readonly #unmade = new Map<string, ProviderErrorClass>();
  readonly #options: MemoryProviderOptions;
  readonly #polls: number;
  readonly #failures: { op: ProviderOp; errorClass: ProviderErrorClass; left: number }[] = [];

  constructor(options: MemoryProviderOptions = {}) {
    this.name = options.name ?? 'memory';
    this.machines = options.machines ?? new Map();
    this.#options = options;
    this.#polls = options.polls ?? 1;
  }

  /** The next `times` requests of the kind fail. */
  failNext(op: ProviderOp, errorClass: ProviderErrorClass, times = 1): void {
    this.#failures.push({ op, errorClass, left: times });
  }

  /** The one machine that is not on its way out. */
  get only(): Machine {
    const alive = [...this.machines.values()].filter((machine) => machine.goesIn === undefined);
    const [machine, ...more] = alive;
    if (machine === undefined || more.length > 0) {
      throw new Error(`${alive.length} machines are alive`);
    }
    return machine;
  }

  create(request: CreateRequest, signal: AbortSignal): Promise<string> {
    const id = `zones/${request.placement.zone ?? 'a'}/${request.name}`;
    return this.#request('create', id, signal, () => {
      const existing = this.machines.get(id);
      const late = this.lateFailures.shift();
      this.#unmade.delete(id);
      if (late !== undefined) this.#unmade.set(id, late);
      else if (existing === undefined) this.#make(id, request);
      else if (existing.disowned || !isSameOwner(existing.request, request))
        throw this.#error('Permanent', 'create', id);
      return id;
    });
  }

  get(id: string, signal: AbortSignal): Promise<Instance> {
    return this.#request('get', id, signal, () => {
      const machine = this.machines.get(id);
      const late = this.#unmade.get(id);
      if (late !== undefined) throw this.#error(late, 'get', id, true);
      if (machine === undefined) throw this.#error('NotFound', 'get', id);
      if (machine.goesIn !== undefined && !machine.held && machine.goesIn-- <= 0) {
        this.machines.delete(id);
        throw this.#error('NotFound', 'get', id);
      }
      machine.startsIn = Math.max(machine.startsIn - 1, 0);
      return instanceOf(machine);
    });
  }

  delete(id: string, signal: AbortSignal): Promise<void> {
    return this.#request('delete', id, signal, () => {
      const machine = this.machines.get(id);
      if (machine !== undefined) machine.goesIn ??= this.#polls;
    });
  }

  disown(id: string, signal: AbortSignal): Promise<void> {
    return this.#request('disown', id, signal, () => {
      const machine = this.machines.get(id);
      if (machine !== undefined) machine.disowned = true;
    });
  }

  listByTag(signal: AbortSignal): Promise<Instance[]> {
    return this.#request('list', '', signal, () => {
      const all = [...this.machines.values()].filter((machine) => !machine.disowned);
      const zoneOf = ({ id }: Machine) => id.split('/')[1] ?? '';
      const readable = all.filter((machine) => !this.unread.has(zoneOf(machine))).map(instanceOf);
      if (this.unread.size === 0) return readable;
      throw new PartialListError(this.name, readable, [...this.unread]);
    });
  }

  #make(id: string, request: CreateRequest): void {
    this.made++;
    this.machines.set(id, {
      id,
      name: request.name,
      request,
      createdAtMs: this.#options.nowMs?.() ?? 0,
      ip: this.#options.addressOf?.(this.made) ?? `10.0.0.${this.made}`,
      startsIn: this.#polls,
    });
  }

  #request<T>(op: ProviderOp, id: string, signal: AbortSignal, act: () => T): Promise<T> {
    const around = this.#options.around ?? ((_op, call) => call());
    return around(op, async () => {
      if (this.#options.silent) await aborted(signal);
      if (signal.aborted) throw this.#error('Transient', op, `${id}: ${signal.reason}`);
      this.requests.push(`${op} ${id}`.trim());
      if (op !== 'list' && !ID_PATTERN.test(id)) throw this.#error('Permanent', op, id);
      const failure = this.#failures.find((each) => each.op === op && each.left > 0);
      if (failure !== undefined) {
        failure.left--;
        throw this.#error(failure.errorClass, op, id);
      }
      return act();
    });
  }

  #error(
    errorClass: ProviderErrorClass,
    op: ProviderOp,
    id: string,
    neverMade = false,
  ): ProviderError {
    const message = `${errorClass} for ${id}`;
    return new ProviderError(errorClass, { op, provider: this.name }, message, { neverMade });
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function isSameOwner(a: Mark, b: Mark): boolean {
  return a.uid === b.uid && a.installation === b.installation;
}

function instanceOf(machine: Machine): Instance {
  const { id, request, createdAtMs, ip, goesIn, startsIn, forced, disowned, unknown } = machine;
  const { uid, installation, namespace, proxyName: name } = request;
  const mark = disowned ? { uid: '', installation: '' } : { uid, installation };
  const base = { id, ...mark, createdAtMs, proxy: { namespace, name } };
  if (goesIn !== undefined) return { ...base, state: 'Stopped', detail: 'Terminating' };
  if (unknown !== undefined) return { ...base, state: 'Stopped', detail: unknown };
  const state = forced ?? (startsIn > 0 ? 'Provisioning' : 'Running');
  return state === 'Provisioning' ? { ...base, state } : { ...base, state, ip };
}
