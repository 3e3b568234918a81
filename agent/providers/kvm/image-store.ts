/**
 * Base images in the pool of a host. Each is fetched once for a host, whoever waits for it, by a
 * job that goes on behind the calls.
 */
import { randomBytes } from 'node:crypto';
import type { Dispatcher } from 'undici';
import { type Backoff, createBackoff } from '#agent/runtime/backoff.ts';
import { orAborted, withDeadline } from '#agent/runtime/deadline.ts';
import type { Clock, Random } from '#shared/clock.ts';
import type { KvmHost, KvmImage } from '../config-kvm.ts';
import { assertDiskRoom } from './capacity.ts';
import { download, ImageError, progressText } from './download.ts';
import type { Hosts } from './hosts.ts';
import type { Pool, Volume } from './libvirt/client.ts';
import type { Libvirt } from './libvirt-port.ts';
import { unlessAbsent } from './lookup.ts';
import { activePool, freshInfo } from './pool.ts';
import { type ImageCopy, imageCopies, imageVolumes } from './volume-names.ts';
import { formatRawVolume, parseVolume } from './volume-xml.ts';

export interface ImageStoreDeps {
  readonly hosts: Hosts;
  readonly clock: Clock;
  readonly random: Random;
  readonly dispatcher?: Dispatcher | undefined;
}

/** What a machine needs of its image. */
export interface ImageRef {
  readonly name: string;
  readonly sha256: string;
}

/** After a failure; what is wrong for good is looked at again all the same, as files are replaced. */
const RETRY = { baseMs: 5_000, maxMs: 300_000 };
const RETRY_LASTING_MS = 600_000;
/** An upload that writes nothing for so long belongs to a process that is no more. */
const ABANDONED_MS = 120_000;
const CLEANUP_DEADLINE_MS = 30_000;
const ATTEMPT_BYTES = 6;

/** The one attempt, or the last failure, at an image on a host. */
interface Entry {
  readonly backoff: Backoff;
  running: { readonly end: Promise<void>; readonly stop: AbortController } | undefined;
  /** How many wait for it; when the last one goes, it is given up. */
  waiting: number;
  progress: string;
  failure: { readonly error: unknown; readonly untilMs: number } | undefined;
}

export class ImageStore {
  readonly #deps: ImageStoreDeps;
  readonly #entries = new Map<string, Entry>();
  /** Attempts of this process that have ended, and did not succeed. */
  readonly #failed = new Set<string>();

  constructor(deps: ImageStoreDeps) {
    this.#deps = deps;
  }

  /**
   * Path of the image on the host, where a copy of it is complete. Copies that were cut off are
   * removed on the way.
   */
  async find(
    libvirt: Libvirt,
    host: KvmHost,
    image: ImageRef,
    signal: AbortSignal,
  ): Promise<Volume | undefined> {
    const pool = await activePool(libvirt, host, signal);
    const prefix = imageVolumes.prefix(image);
    const volumes = new Map(
      (await libvirt.listVolumes(pool, signal)).map((volume) => [volume.name, volume]),
    );
    let found: Volume | undefined;
    for (const copy of imageCopies(prefix, [...volumes.keys()])) {
      const data = volumes.get(imageVolumes.data(prefix, copy));
      if (copy.isComplete) found ??= data;
      else await this.#removeAbandoned(libvirt, volumes, prefix, copy, signal);
    }
    return found;
  }

  /**
   * Fetches the image unless that is being done; resolves when it is there. After a failure it is
   * not tried again before a while has passed: the failure is thrown until then. `signal` ends the
   * waiting, and the work when nobody else waits for it.
   */
  async fetch(host: KvmHost, image: KvmImage, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const entry = this.#entryOf(host, image);
    if (entry.running === undefined) {
      if (entry.failure !== undefined && clock.monotonicMs() < entry.failure.untilMs) {
        throw entry.failure.error;
      }
      const stop = new AbortController();
      entry.progress = 'asking for it';
      entry.running = { end: this.#attempt(host, image, entry, stop.signal), stop };
    }
    const { end, stop } = entry.running;
    entry.waiting++;
    try {
      await orAborted(end, signal);
    } finally {
      entry.waiting--;
      if (entry.waiting === 0) stop.abort(new Error('nobody waits for the image any more'));
    }
  }

  /** How far it is, for a person; undefined when nothing is being fetched. */
  progress(host: KvmHost, image: ImageRef): string | undefined {
    const entry = this.#entries.get(keyOf(host, image));
    return entry?.running === undefined ? undefined : entry.progress;
  }

  #entryOf(host: KvmHost, image: ImageRef): Entry {
    const key = keyOf(host, image);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const backoff = createBackoff(RETRY, this.#deps.random);
    const entry = { backoff, running: undefined, waiting: 0, progress: '', failure: undefined };
    this.#entries.set(key, entry);
    return entry;
  }

  async #attempt(host: KvmHost, image: KvmImage, entry: Entry, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.hosts.dedicated(host, signal, (libvirt) =>
        this.#transfer(libvirt, host, image, entry, signal),
      );
      entry.failure = undefined;
      entry.backoff.reset();
    } catch (error) {
      // Nobody waits for it any more: that is no failure of the image.
      if (!signal.aborted) {
        const lasting = error instanceof ImageError && error.lasting;
        const delayMs = lasting ? RETRY_LASTING_MS : entry.backoff.nextMs();
        entry.failure = { error, untilMs: this.#deps.clock.monotonicMs() + delayMs };
      }
      throw error;
    } finally {
      entry.running = undefined;
    }
  }

  async #transfer(
    libvirt: Libvirt,
    host: KvmHost,
    image: KvmImage,
    entry: Entry,
    signal: AbortSignal,
  ): Promise<void> {
    // Another process may have fetched it since the machine looked.
    if ((await this.find(libvirt, host, image, signal)) !== undefined) return;
    const pool = await activePool(libvirt, host, signal);
    const { bytes, content } = await download(image, this.#deps.dispatcher, signal);
    const prefix = imageVolumes.prefix(image);
    const copy = { attempt: randomBytes(ATTEMPT_BYTES).toString('hex') };
    const source = counted(content, (done) => {
      entry.progress = progressText(done, bytes);
    });
    let data: Volume | undefined;
    try {
      const info = await freshInfo(libvirt, pool, signal);
      assertDiskRoom(host.name, { name: host.pool, info }, bytes, `image ${image.name}`);
      const xml = formatRawVolume(imageVolumes.data(prefix, copy), bytes);
      data = await libvirt.createVolume(pool, xml, signal);
      await libvirt.upload(data, source, { length: bytes }, signal);
      await assertWhole(libvirt, data, bytes, signal);
      // From here on the copy counts.
      await libvirt.createVolume(
        pool,
        formatRawVolume(imageVolumes.complete(prefix, copy), 0),
        signal,
      );
    } catch (error) {
      await source.return();
      this.#failed.add(copy.attempt);
      if (data !== undefined) await this.#discard(libvirt, pool, data, copy, prefix);
      throw error;
    }
  }

  /** What fails here, or never comes to pass, is done by the next who looks for the image. */
  async #discard(
    libvirt: Libvirt,
    pool: Pool,
    data: Volume,
    copy: ImageCopy,
    prefix: string,
  ): Promise<void> {
    const { clock } = this.#deps;
    await withDeadline(clock, CLEANUP_DEADLINE_MS, undefined, async (signal) => {
      const name = imageVolumes.complete(prefix, copy);
      const mark = await unlessAbsent(libvirt.volumeByName(pool, name, signal));
      if (mark !== undefined) await unlessAbsent(libvirt.deleteVolume(mark, signal));
      await unlessAbsent(libvirt.deleteVolume(data, signal));
    }).catch(() => undefined);
  }

  async #removeAbandoned(
    libvirt: Libvirt,
    volumes: ReadonlyMap<string, Volume>,
    prefix: string,
    copy: ImageCopy,
    signal: AbortSignal,
  ): Promise<void> {
    const mark = volumes.get(imageVolumes.complete(prefix, copy));
    if (mark !== undefined) await unlessAbsent(libvirt.deleteVolume(mark, signal));
    const data = volumes.get(imageVolumes.data(prefix, copy));
    if (data === undefined) return;
    if (this.#failed.has(copy.attempt)) {
      await unlessAbsent(libvirt.deleteVolume(data, signal));
      this.#failed.delete(copy.attempt);
      return;
    }
    const text = await unlessAbsent(libvirt.volumeXml(data, signal));
    const changedAtMs = (text && parseVolume(text)?.changedAtMs) || 0;
    if (this.#deps.clock.now() - changedAtMs < ABANDONED_MS) return;
    await unlessAbsent(libvirt.deleteVolume(data, signal));
  }
}

function keyOf(host: KvmHost, image: ImageRef): string {
  return JSON.stringify([host.name, image.name, image.sha256]);
}

/** The upload itself counts what it sent; this is what the host has of it. */
async function assertWhole(
  libvirt: Libvirt,
  volume: Volume,
  bytes: number,
  signal: AbortSignal,
): Promise<void> {
  const found = parseVolume(await libvirt.volumeXml(volume, signal));
  if (found?.fileBytes === bytes) return;
  throw new ImageError(`${volume.name} has ${found?.fileBytes} bytes on the host, not ${bytes}`);
}

async function* counted(
  source: AsyncIterable<Uint8Array>,
  onProgress: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    onProgress(bytes);
    yield chunk;
  }
}
