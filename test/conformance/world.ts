/** What one rule works with: strict providers, requests for new Proxies, and patience. */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import {
  ProviderError,
  type ProviderErrorClass,
  type ProviderOp,
} from '#agent/providers/errors.ts';
import { instanceName } from '#agent/providers/naming.ts';
import type { CreateRequest, Instance, Mark, Provider } from '#agent/providers/provider.ts';
import { systemClock } from '#shared/clock.ts';
import { eventually } from '#test/integration/eventually.ts';
import type { Backend, TestedProvider } from './backend.ts';

/** Returning within it, well below any deadline of a single request, counts as prompt. */
export const PROMPT_MS = 2_000;
const POLL_MS = 20;

/** The configured name in every test: never the type, so that mixing them up shows. */
export const CONFIGURED_NAME = 'conformance-1';
export const INSTALLATION = 'installation-under-test';

export interface Rule {
  /** A sentence on behaviour. */
  readonly title: string;
  run(world: World): Promise<void>;
}

export class World {
  readonly backend: Backend;
  readonly provider: Provider;
  /** Ends the rule; the reason is printed. */
  readonly skip: (reason: string) => never;
  readonly signal: AbortSignal = new AbortController().signal;
  readonly #made: CreateRequest[] = [];

  constructor(backend: Backend, skip: (reason: string) => never) {
    this.backend = backend;
    this.skip = skip;
    this.provider = this.restarted();
  }

  /** A new provider object, as after a crash of the agent. */
  restarted(): Provider {
    return strict(this.backend.newProvider());
  }

  /** What the backend can make, or a skip that tells why the rule cannot be shown. */
  need<T>(made: T | undefined, what: string): T {
    return made ?? this.skip(`the backend has no way to ${what}`);
  }

  /** A request for a Proxy that is new. */
  request(over: Partial<CreateRequest> = {}): CreateRequest {
    const uid = randomUUID();
    const name = instanceName(uid);
    const proxyName = `proxy-of-${name.slice(-4)}`;
    const { surroundings } = this.backend;
    const request = { name, uid, installation: INSTALLATION, proxyName, ...surroundings, ...over };
    this.#made.push(request);
    return request;
  }

  /** Polls until the machine runs. */
  running(id: string): Promise<Instance> {
    let last: Instance | undefined;
    return this.#poll(
      async () => {
        last = await this.provider.get(id, this.signal);
        return last.state === 'Running' ? last : undefined;
      },
      () => `${id} does not run: ${last?.state}, ${last?.detail}`,
    );
  }

  /** Polls until the machine is gone; every answer on the way. */
  async gone(id: string): Promise<Instance[]> {
    const seen: Instance[] = [];
    await this.#poll(
      async () => {
        const answer = await found(this.provider, id, this.signal);
        if (answer !== undefined) seen.push(answer);
        return answer === undefined ? true : undefined;
      },
      () => `${id} does not go away: ${seen.at(-1)?.state}, ${seen.at(-1)?.detail}`,
    );
    return seen;
  }

  /** Repeats an expectation for as long as machines may take to settle. */
  settles(attempt: () => Promise<void>): Promise<void> {
    return eventually(attempt, this.backend.settleMsMax);
  }

  async listed(provider: Provider = this.provider): Promise<Map<string, Instance>> {
    const list = await provider.listByTag(this.signal);
    expect(new Set(list.map(({ id }) => id)).size, 'an id is listed twice').toBe(list.length);
    return new Map(list.map((instance) => [instance.id, instance]));
  }

  /** Deletes what the rule left behind; what cannot be deleted goes with the backend. */
  async tidy(): Promise<void> {
    const provider = this.backend.newProvider();
    const ids = this.#made.map(({ name }) => this.backend.idOf(name));
    await Promise.allSettled(ids.map((id) => provider.delete(id, AbortSignal.timeout(PROMPT_MS))));
  }

  async #poll<T>(attempt: () => Promise<T | undefined>, otherwise: () => string): Promise<T> {
    const deadlineMs = systemClock.monotonicMs() + this.backend.settleMsMax;
    for (;;) {
      const result = await attempt();
      if (result !== undefined) return result;
      if (systemClock.monotonicMs() >= deadlineMs) throw new Error(otherwise());
      await systemClock.sleep(POLL_MS);
    }
  }
}

/** The instance, or undefined for NotFound. */
async function found(
  provider: Provider,
  id: string,
  signal: AbortSignal,
): Promise<Instance | undefined> {
  try {
    return await provider.get(id, signal);
  } catch (error) {
    if (error instanceof ProviderError && error.class === 'NotFound') return undefined;
    throw error;
  }
}

/** The error that `call` fails with; its class is asserted. */
export async function failure(
  call: Promise<unknown>,
  errorClass: ProviderErrorClass,
): Promise<ProviderError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ProviderError)) throw new Error(`no ProviderError: ${String(error)}`);
  expect(error.class, error.message).toBe(errorClass);
  return error;
}

/** What `call` gives, when it comes within `PROMPT_MS`. */
export async function prompt<T>(call: Promise<T>, what: string): Promise<T> {
  const waiting = new AbortController();
  const late = systemClock.sleep(PROMPT_MS, waiting.signal).then(() => {
    throw new Error(`${what} took more than ${PROMPT_MS} ms`);
  });
  late.catch(() => {});
  try {
    return await Promise.race([call, late]);
  } finally {
    waiting.abort();
  }
}

export const markOf = ({ uid, installation }: Mark): Mark => ({ uid, installation });

/**
 * The same provider, whose every answer is held to what is always true: errors are ProviderErrors
 * that name the configured provider and the operation, and Running comes with an address.
 */
export function strict(provider: TestedProvider): Provider {
  async function held<T>(op: ProviderOp, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      expect(error, `${op} threw something else`).toBeInstanceOf(ProviderError);
      expect(error).toMatchObject({ op, provider: CONFIGURED_NAME });
      if (op !== 'get') expect(error).not.toMatchObject({ class: 'NotFound' });
      throw error;
    }
  }
  return {
    name: provider.name,
    type: provider.type,
    create: (request, signal) => held('create', () => provider.create(request, signal)),
    get: (id, signal) => held('get', async () => usable(await provider.get(id, signal))),
    delete: (id, signal) => held('delete', () => provider.delete(id, signal)),
    disown: (id, signal) => held('disown', () => provider.disown(id, signal)),
    listByTag: (signal) => held('list', async () => (await provider.listByTag(signal)).map(usable)),
  };
}

function usable(instance: Instance): Instance {
  if (instance.state === 'Running' && !instance.ip) throw new Error('Running without an address');
  return instance;
}
