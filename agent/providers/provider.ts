/**
 * The provider contract: four calls over one machine that is known by an opaque id. Who keeps
 * which rule, and why, is told at each method. Every call honours `signal` and throws only
 * `ProviderError`.
 */
import type { Placement } from '#shared/crd/proxy.ts';
import { ProviderError } from './errors.ts';

export type InstanceState = 'Provisioning' | 'Running' | 'Stopped' | 'Terminated';

/** What every machine carries from the call that makes it: whose it is. */
export interface Mark {
  /** UID of the owning Proxy. */
  readonly uid: string;
  /** Id of the installation; another installation's machines are never touched. */
  readonly installation: string;
}

/** A machine as the backend has it; the mark is read back, and an absent part of it is empty. */
export interface Instance extends Mark {
  /** What `get` and `delete` take; self-contained, location included. */
  readonly id: string;
  readonly state: InstanceState;
  /** Set whenever the state is Running. */
  readonly ip?: string;
  /** Milliseconds since the epoch, read back from the backend; 0 when it is unreadable. */
  readonly createdAtMs: number;
  /** The backend's own word for the state, for conditions and events. */
  readonly detail?: string;
  /** Namespace and name of the Proxy, where the backend keeps them; for people. */
  readonly proxy?: { readonly namespace: string; readonly name: string };
}

export interface CreateRequest extends Mark {
  /** From `instanceName`; the same at every attempt, which makes `create` idempotent. */
  readonly name: string;
  readonly namespace: string;
  readonly proxyName: string;
  readonly placement: Placement;
  /** Resolved user-data; a secret, never logged. */
  readonly cloudInit?: string;
  /** Port that the proxy must listen on. */
  readonly port: number;
  /** Of the Proxy: grows with each edit, so that a backend can tell a repeat from a new wish. */
  readonly generation?: number;
}

export interface Provider {
  /** The configured name, which `spec.provider` refers to. */
  readonly name: string;
  readonly type: string;
  /** Machines that may be begun within a minute; absent: as many as the controller allows. */
  readonly creationsPerMinute?: number;

  /**
   * Submits the machine and returns its id. Idempotent by `request.name`: a repeat answers with
   * the id of what exists, after verifying its whole mark; another owner's machine under the name
   * is Permanent. The mark is written in the same call that makes the machine. Never NotFound.
   */
  create(request: CreateRequest, signal: AbortSignal): Promise<string>;

  /**
   * NotFound when, and only when, the machine is gone and its name is free. A machine that is
   * being deleted is still returned, and is not Running. A malformed id is Permanent. A machine
   * that was submitted and never came to be is an error with `neverMade`, for a while at least.
   */
  get(id: string, signal: AbortSignal): Promise<Instance>;

  /** Removes all that `create` made. Idempotent; may return before the machine is gone. */
  delete(id: string, signal: AbortSignal): Promise<void>;

  /**
   * Takes the mark off: the machine runs on and is nobody's, so that no sweep ever finds it.
   * Idempotent; a machine that is gone is no failure.
   */
  disown(id: string, signal: AbortSignal): Promise<void>;

  /**
   * Every machine with our mark, of whatever installation, in the whole scope, or an error; never
   * a partial guess. What could be read beside what could not is in a `PartialListError`.
   */
  listByTag(signal: AbortSignal): Promise<Instance[]>;

  /** Lets go of connections and the like; no call is made afterwards. Absent: nothing to let go. */
  close?(): Promise<void>;
}

/**
 * A part of the scope could not be read. Who has to know whether a machine exists has no answer:
 * hence an error. Who looks for machines that are too many may go by `instances`, since what is not
 * listed is left alone.
 */
export class PartialListError extends ProviderError {
  readonly instances: readonly Instance[];
  /** The parts that could not be read, in the backend's own words, such as `zones/us-east1-b`. */
  readonly unread: readonly string[];

  constructor(provider: string, instances: readonly Instance[], unread: readonly string[]) {
    const message = `cannot be read at present: ${unread.join(', ')}`;
    super('Transient', { op: 'list', provider }, message);
    this.instances = instances;
    this.unread = unread;
  }
}

/** What a wrapper around a provider takes over of it beside its calls. */
export function limitsOf({ creationsPerMinute }: Provider): Pick<Provider, 'creationsPerMinute'> {
  return creationsPerMinute === undefined ? {} : { creationsPerMinute };
}

/** Verdict of one check on what can fail on its own: a host, a project, an API server. */
export interface TargetStatus {
  readonly name: string;
  readonly ready: boolean;
  /** Shared reasons: Reachable, Timeout, Unreachable, Unauthorized, Forbidden, APIError. */
  readonly reason: string;
  readonly message: string;
  readonly details?: Readonly<Record<string, string>>;
}

/** Optional ability: tells whether the backend can be reached now. */
export interface Checker {
  /** Never fails as a whole; one entry per target, in a stable order; prompt once aborted. */
  check(signal: AbortSignal): Promise<TargetStatus[]>;
}
