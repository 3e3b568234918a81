/**
 * What follows `create`: image, disk and start of a machine, by a job behind the calls, so that no
 * caller waits for a download. All that it needs stands in the domain's metadata. So whoever asks for
 * a machine in the phase `preparing` starts the job, be it another process than the one that
 * created the machine.
 *
 * A job ends by itself when nobody has asked for its machine for a while. So none goes on for a
 * process that no longer leads, for a configuration that is no longer in force, or for a Proxy that
 * is paused.
 */
import { createBackoff } from '#agent/runtime/backoff.ts';
import { orAborted, pause } from '#agent/runtime/deadline.ts';
import type { Clock, Random, Timer } from '#shared/clock.ts';
import type { KvmBlock, KvmHost, KvmImage } from '../config-kvm.ts';
import { assertMemoryRoom } from './capacity.ts';
import { UnusableError } from './classify.ts';
import { keepUnlessDeleted, ownVolume, setPhase } from './create.ts';
import type { Hosts, Use } from './hosts.ts';
import type { ImageStore } from './image-store.ts';
import { DOMAIN_STATE, isLibvirtError } from './libvirt/client.ts';
import type { Libvirt } from './libvirt-port.ts';
import { type Found, findDomain } from './lookup.ts';
import type { MachineMetadata, Plan } from './metadata.ts';
import { ensureOverlay } from './overlay.ts';

export interface PreparationDeps {
  readonly hosts: Hosts;
  readonly images: ImageStore;
  /** Where the addresses of images stand. */
  readonly block: Pick<KvmBlock, 'images'>;
  readonly clock: Clock;
  readonly random: Random;
}

/** A machine in the making, by what no successor of it has in common with it. */
export interface MachineRef {
  readonly name: string;
  readonly uuid: string;
}

const RETRY = { baseMs: 2_000, maxMs: 60_000 };
/** Far above the time between two polls of a machine that comes up. */
const UNATTENDED_MS = 180_000;

interface Job {
  readonly uuid: string;
  readonly stop: AbortController;
  unattended: Timer;
  /** Why the last attempt failed; for a person. */
  failure: string | undefined;
  end: Promise<void>;
}

export class Preparations {
  readonly #deps: PreparationDeps;
  readonly #jobs = new Map<string, Job>();

  constructor(deps: PreparationDeps) {
    this.#deps = deps;
  }

  /** Starts the job of a machine, or keeps it going. */
  attend(host: KvmHost, machine: MachineRef): void {
    const key = keyOf(host, machine.name);
    const known = this.#jobs.get(key);
    if (known?.uuid === machine.uuid) {
      known.unattended.cancel();
      known.unattended = this.#watch(known.stop);
      return;
    }
    known?.stop.abort();
    const stop = new AbortController();
    const job: Job = {
      uuid: machine.uuid,
      stop,
      unattended: this.#watch(stop),
      failure: undefined,
      end: Promise.resolve(),
    };
    this.#jobs.set(key, job);
    job.end = this.#run(host, machine, job).finally(() => {
      job.unattended.cancel();
      if (this.#jobs.get(key) === job) this.#jobs.delete(key);
    });
  }

  /** What a job is at, or why it failed last; undefined when there is none. */
  status(host: KvmHost, name: string, plan: Plan): string | undefined {
    const job = this.#jobs.get(keyOf(host, name));
    if (job?.failure !== undefined) return job.failure;
    const image = this.#imageOf(plan);
    const progress = image && job && this.#deps.images.progress(host, image);
    return progress === undefined ? undefined : `image ${plan.image}: ${progress}`;
  }

  /** Ends the job of a machine, if there is one; resolves when nothing of it is under way. */
  async stop(host: KvmHost, name: string, signal: AbortSignal): Promise<void> {
    const job = this.#jobs.get(keyOf(host, name));
    if (job === undefined) return;
    job.stop.abort(new Error('the machine is being deleted'));
    await orAborted(job.end, signal);
  }

  #watch(stop: AbortController): Timer {
    const why = new Error('nobody asks for the machine any more');
    return this.#deps.clock.setTimer(() => stop.abort(why), UNATTENDED_MS);
  }

  async #run(host: KvmHost, machine: MachineRef, job: Job): Promise<void> {
    const { clock, random } = this.#deps;
    const backoff = createBackoff(RETRY, random);
    const { signal } = job.stop;
    while (!signal.aborted) {
      try {
        await this.#prepare(host, machine, signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        job.failure = error instanceof Error ? error.message : String(error);
        await pause(clock, backoff.nextMs(), signal);
      }
    }
  }

  /** Returns when there is nothing more to do, also for a machine that is gone. */
  async #prepare(host: KvmHost, machine: MachineRef, signal: AbortSignal): Promise<void> {
    const plan = await this.#call(host, (...at) => planOf(...at, machine));
    if (plan === undefined) return;
    const image = await this.#ensureImage(host, plan, signal);
    signal.throwIfAborted();
    await this.#call(host, (libvirt, within) =>
      this.#complete(libvirt, { host, machine, image }, within),
    );
  }

  /**
   * Calls that are short are not given up when the job is: who stops it waits for them, so that
   * nothing of it happens afterwards. They have the deadline that every use of a host has.
   */
  #call<T>(host: KvmHost, use: Use<T>): Promise<T> {
    return this.#deps.hosts.call(host, new AbortController().signal, use);
  }

  /** By its name, so that a mistake in the configuration can be mended for machines on their way. */
  #imageOf(plan: Plan): KvmImage | undefined {
    return this.#deps.block.images.find(({ name }) => name === plan.image);
  }

  async #ensureImage(host: KvmHost, plan: Plan, signal: AbortSignal): Promise<KvmImage> {
    const { images } = this.#deps;
    const image = this.#imageOf(plan);
    if (image === undefined) {
      throw new UnusableError(`image ${plan.image} is no longer in the configuration`);
    }
    const present = await this.#call(host, (libvirt, within) =>
      images.find(libvirt, host, image, within),
    );
    if (present === undefined) await images.fetch(host, image, signal);
    return image;
  }

  /** From the image to a machine that runs; in one go, as all of it is quick. */
  async #complete(
    libvirt: Libvirt,
    of: { readonly host: KvmHost; readonly machine: MachineRef; readonly image: KvmImage },
    signal: AbortSignal,
  ): Promise<void> {
    const { host, machine } = of;
    const found = await findPreparing(libvirt, machine, signal);
    if (found === undefined) return;
    const { definition, domain } = found;
    const { state } = await libvirt.domainState(domain, signal);
    if (state === DOMAIN_STATE.shutoff) {
      const image = await this.#deps.images.find(libvirt, host, of.image, signal);
      if (image === undefined) throw new Error(`image ${of.image.name} vanished from the pool`);
      const disk = ownVolume(definition, 'qcow2');
      if (disk === undefined) throw new Error(`domain ${domain.name} has no disk of ours`);
      const { diskGiB } = definition.machine.plan;
      const overlay = await ensureOverlay(libvirt, host, disk, { image, diskGiB }, signal);
      await keepUnlessDeleted(libvirt, domain, overlay, signal);
      const memory = await libvirt.hostMemory(signal);
      assertMemoryRoom(host.name, memory, definition.memoryBytes, `domain ${domain.name}`);
      await start(libvirt, found, signal);
    }
    await setPhase(libvirt, found, 'started', signal);
  }
}

function keyOf(host: KvmHost, name: string): string {
  return JSON.stringify([host.name, name]);
}

type Preparing = Found & { readonly definition: { readonly machine: MachineMetadata } };

async function planOf(
  libvirt: Libvirt,
  signal: AbortSignal,
  machine: MachineRef,
): Promise<Plan | undefined> {
  return (await findPreparing(libvirt, machine, signal))?.definition.machine.plan;
}

/** The very machine, as long as it is to be prepared. */
async function findPreparing(
  libvirt: Libvirt,
  { name, uuid }: MachineRef,
  signal: AbortSignal,
): Promise<Preparing | undefined> {
  const found = await findDomain(libvirt, name, signal);
  const machine = found?.definition.machine;
  if (found === undefined || machine?.phase !== 'preparing' || found.domain.uuid !== uuid) {
    return undefined;
  }
  return { domain: found.domain, definition: { ...found.definition, machine } };
}

async function start(libvirt: Libvirt, { domain }: Found, signal: AbortSignal): Promise<void> {
  try {
    await libvirt.startDomain(domain, signal);
  } catch (error) {
    // It runs: an answer that was lost, or another process.
    if (!isLibvirtError(error, 'operationInvalid')) throw error;
  }
}
