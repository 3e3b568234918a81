/** The suite itself: each rule is broken by a provider that gets one thing wrong, and says so. */
import { describe, expect, it } from 'vitest';
import { ProviderError } from '#agent/providers/errors.ts';
import type { CreateRequest, Instance } from '#agent/providers/provider.ts';
import { MemoryProvider } from '#test/fakes/memory-provider.ts';
import { type MakeProvider, openMemoryBackend } from './memory.ts';
import { RULES } from './suite.ts';
import { World } from './world.ts';

class Skipped extends Error {}

/** Titles of the rules that a provider breaks, of those whose title matches. */
async function broken(make: MakeProvider, of = /^/): Promise<string[]> {
  const titles: string[] = [];
  for (const { title, run } of RULES.filter((rule) => of.test(rule.title))) {
    const backend = await openMemoryBackend(make);
    const world = new World({ ...backend, settleMsMax: 200 }, (reason) => {
      throw new Skipped(reason);
    });
    try {
      await run(world);
    } catch (error) {
      if (!(error instanceof Skipped)) titles.push(title);
    }
  }
  return titles;
}

const notFound = (provider: MemoryProvider, op: 'get' | 'delete' = 'get') =>
  new ProviderError('NotFound', { op, provider: provider.name }, 'x');

class Forgetful extends MemoryProvider {
  #count = 0;
  override create(request: CreateRequest, signal: AbortSignal): Promise<string> {
    return super.create({ ...request, name: `${request.name}-${++this.#count}` }, signal);
  }
}

class Trusting extends MemoryProvider {
  override async create(request: CreateRequest, signal: AbortSignal): Promise<string> {
    const id = `zones/a/${request.name}`;
    return this.machines.has(id) ? id : super.create(request, signal);
  }
}

class OwnerOnly extends MemoryProvider {
  override create(request: CreateRequest, signal: AbortSignal): Promise<string> {
    const { installation } = this.machines.get(`zones/a/${request.name}`)?.request ?? request;
    return super.create({ ...request, installation }, signal);
  }
}

class Hasty extends MemoryProvider {
  override async get(id: string, signal: AbortSignal): Promise<Instance> {
    const instance = await super.get(id, signal);
    if (instance.detail === 'Terminating') throw notFound(this);
    return instance;
  }
}

class Optimist extends MemoryProvider {
  override async get(id: string, signal: AbortSignal): Promise<Instance> {
    return { ...(await super.get(id, signal)), state: 'Running' };
  }
}

class Panicking extends MemoryProvider {
  override async get(id: string, signal: AbortSignal): Promise<Instance> {
    return super.get(id, signal).catch(() => {
      throw notFound(this);
    });
  }
}

class Complaining extends MemoryProvider {
  override async delete(id: string, signal: AbortSignal): Promise<void> {
    if (!this.machines.has(id)) throw notFound(this, 'delete');
    return super.delete(id, signal);
  }
}

class Lazy extends MemoryProvider {
  override async delete(): Promise<void> {}
  override async disown(): Promise<void> {}
}

class Ageless extends MemoryProvider {
  override async get(id: string, signal: AbortSignal): Promise<Instance> {
    return { ...(await super.get(id, signal)), createdAtMs: 0 };
  }
}

class Greedy extends MemoryProvider {
  override async listByTag(signal: AbortSignal): Promise<Instance[]> {
    await super.listByTag(signal);
    return Promise.all([...this.machines.keys()].map((id) => this.get(id, signal)));
  }
}

class Silent extends MemoryProvider {
  override listByTag(signal: AbortSignal): Promise<Instance[]> {
    return super.listByTag(signal).catch(() => []);
  }
}

class Talkative extends MemoryProvider {
  override create(request: CreateRequest, signal: AbortSignal): Promise<string> {
    return super.create(request, signal).catch((cause: unknown) => {
      const at = { op: 'create', provider: this.name } as const;
      const errorClass = cause instanceof ProviderError ? cause.class : 'Transient';
      throw new ProviderError(errorClass, at, `${JSON.stringify(request)} failed`, { cause });
    });
  }
}

class Deaf extends MemoryProvider {
  override get(id: string, signal: AbortSignal): Promise<Instance> {
    return signal.aborted ? new Promise(() => {}) : super.get(id, signal);
  }
}

class Misnamed extends MemoryProvider {
  override get(id: string, signal: AbortSignal): Promise<Instance> {
    return super.get(id, signal).catch((cause: unknown) => {
      const errorClass = cause instanceof ProviderError ? cause.class : 'Transient';
      throw new ProviderError(errorClass, { op: 'get', provider: this.type }, 'x');
    });
  }
}

describe('the suite', () => {
  it('finds no fault with a provider that keeps the rules', async () => {
    expect(await broken((options) => new MemoryProvider(options))).toEqual([]);
  });

  it.each<
    [string, new (...args: ConstructorParameters<typeof MemoryProvider>) => MemoryProvider, RegExp]
  >([
    ['makes a new machine each time', Forgetful, /^create repeated/],
    ['adopts whatever has its name', Trusting, /^create leaves an unmarked machine/],
    ['adopts machines of other Proxies', Trusting, /^create leaves the machine of another Proxy/],
    ['looks at the owner alone', OwnerOnly, /^create leaves the machine of another installation/],
    ['says NotFound too early', Hasty, /^get goes on showing a machine/],
    ['calls a dying machine Running', Optimist, /^get goes on showing a machine/],
    ['calls an unknown state Running', Optimist, /^get calls a state that it does not know/],
    ['takes an outage for the end of a machine', Panicking, /^get through a backend/],
    ['fails to delete what is gone', Complaining, /^delete of what never was/],
    ['deletes nothing', Lazy, /^delete can be repeated/],
    ['keeps its mark on', Lazy, /^disown takes the mark off/],
    ['forgets when it made a machine', Ageless, /^get reads mark and time/],
    ['lists the machines of others', Greedy, /^list leaves out/],
    ['lists nothing when it cannot', Silent, /^list through a backend/],
    ['tells user-data in an error', Talkative, /^user-data is in no/],
    ['does not hear an aborted signal', Deaf, /^a call whose signal is aborted/],
    ['names its type in errors', Misnamed, /^every error names/],
  ])('catches a provider that %s', async (_what, Broken, rule) => {
    expect(await broken((options) => new Broken(options), rule)).toHaveLength(1);
  });
});
