/** The provider over a host in memory and a web server in memory, in stepped time. */
import { createHash, randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { MockAgent } from 'undici';
import { ProviderError } from '#agent/providers/errors.ts';
import { createKvmProvider } from '#agent/providers/kvm/provider.ts';
import { formatRawVolume } from '#agent/providers/kvm/volume-xml.ts';
import type { Checker, CreateRequest, Instance, Provider } from '#agent/providers/provider.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { FakeLibvirtHost, type SessionHooks } from '#test/fakes/libvirt-host.ts';
import { configWith, qcow2Head, request } from './block.ts';

const ORIGIN = 'https://images.example.net';
const STEP_MS = 500;
const STEPS_MAX = 4_000;

export const IMAGE = Buffer.concat([qcow2Head(1024 ** 3), Buffer.alloc(100_000, 'image')]);
export const SHA256 = createHash('sha256').update(IMAGE).digest('hex');
export const ID = `hosts/hv1/domains/${request.name}`;
export const signal = new AbortController().signal;

export class KvmWorld {
  readonly host = new FakeLibvirtHost();
  readonly clock = new FakeClock();
  readonly web = new MockAgent();
  readonly logLines: string[] = [];

  constructor() {
    this.host.nowMs = () => this.clock.now();
    this.web.disableNetConnect();
  }

  /** What the web server answers from now on, `times` times. */
  serve(
    answer: { status?: number; body?: Buffer; headers?: Record<string, string> } = {},
    times = 1_000,
  ): this {
    const { status = 200, body = IMAGE } = answer;
    const headers = { 'content-length': String(body.length), ...answer.headers };
    this.web
      .get(ORIGIN)
      .intercept({ path: '/debian.qcow2' })
      .reply(status, body, { headers })
      .times(times);
    return this;
  }

  /** A process of its own, with no memory of others. */
  provider(hooks: SessionHooks = {}, over: object = {}): Provider & Checker {
    const images = [{ name: 'debian-13', url: `${ORIGIN}/debian.qcow2`, sha256: SHA256 }];
    return createKvmProvider(configWith({ images, ...over }), {
      hosts: this.host.hosts(hooks),
      clock: this.clock,
      random: () => 0.5,
      newUuid: randomUUID,
      dispatcher: this.web,
      log: {
        debug: (fields, message) => void this.logLines.push(JSON.stringify({ ...fields, message })),
      },
    });
  }

  /** Lets time pass, and what is under way go on, until `attempt` gives something. */
  async until<T>(attempt: () => Promise<T | undefined> | T | undefined): Promise<T> {
    for (let step = 0; step < STEPS_MAX; step++) {
      const result = await attempt();
      if (result !== undefined) return result;
      await this.pass(STEP_MS);
    }
    throw new Error('it does not come to pass');
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advance(ms);
    await setImmediate();
  }

  running(provider: Provider, id: string = ID): Promise<Instance> {
    return this.until(async () => {
      const instance = await provider.get(id, signal);
      return instance.state === 'Running' ? instance : undefined;
    });
  }

  /** As the controller does it: again after a failure that passes. */
  created(provider: Provider, of: CreateRequest = request): Promise<string> {
    return this.until(async () => {
      try {
        return await provider.create(of, signal);
      } catch (error) {
        if (error instanceof ProviderError && error.class === 'Transient') return undefined;
        throw error;
      }
    });
  }

  /** A file in the pool, as somebody who is gone left it. */
  leave(name: string, content = ''): void {
    const xml = formatRawVolume(name, content.length);
    const changedAtMs = this.clock.now();
    this.host.volumes.set(name, { xml, content: Buffer.from(content), changedAtMs });
  }

  /** Disks and seeds in the pool. */
  get machineVolumes(): string[] {
    return this.host.volumeNames.filter((name) => /\.(?:qcow2|iso)$/.test(name));
  }

  get imageVolumes(): string[] {
    return this.host.volumeNames.filter((name) => name.startsWith('egress-image-'));
  }
}

/** Class of the failure of `call`. */
export async function classOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'no failure',
    (error: unknown) => (error instanceof ProviderError ? error.class : `odd: ${String(error)}`),
  );
}
