/**
 * The face of this folder: what a program asks libvirt, over any duplex stream that leads to its
 * socket. Every call takes a signal; an aborted call is abandoned (its late answer is ignored, and
 * what it asked for may still happen), and no other call notices.
 */
import type { Duplex } from 'node:stream';
import { type CallLimits, Connection, type Timers } from './connection.ts';
import type { ADDRESS_SOURCE } from './constants.ts';
import { shakeHands } from './handshake.ts';
import {
  PROCEDURES as CALL,
  type DhcpLease,
  type Domain,
  type DomainInterface,
  type Network,
  type NodeInfo,
  type Pool,
  type PoolInfo,
  type StateOfDomain,
  type Volume,
  type VolumeInfo,
} from './procedures.ts';
import { type Bytes, type UploadOptions, upload } from './upload.ts';

export type { CallLimits, Timers } from './connection.ts';
export {
  ADDRESS_SOURCE,
  ADDRESS_TYPE,
  AFFECT,
  DOMAIN_STATE,
  DOMAIN_XML,
  POOL_STATE,
  UNDEFINE,
} from './constants.ts';
export {
  ERROR_CODE,
  isLibvirtError,
  LibvirtConnectionError,
  LibvirtError,
  LibvirtRefusedError,
  LibvirtUploadError,
} from './errors.ts';
export type {
  DhcpLease,
  Domain,
  DomainInterface,
  Network,
  NodeInfo,
  Pool,
  PoolInfo,
  StateOfDomain,
  Volume,
  VolumeInfo,
} from './procedures.ts';
export type { Bytes, UploadOptions } from './upload.ts';

/** The one kind of metadata with a namespace of its own (`VIR_DOMAIN_METADATA_ELEMENT`). */
const METADATA_ELEMENT = 2;
/** All NUMA cells together (`VIR_NODE_MEMORY_STATS_ALL_CELLS`). */
const ALL_CELLS = -1;
const NEED_RESULTS = 1;

export interface LibvirtOptions extends CallLimits {
  /** Which driver answers; `qemu:///system` unless told otherwise. */
  readonly uri?: string;
  readonly timers: Timers;
}

/** Memory of a host in bytes; `available` counts what the kernel can take back from caches. */
export interface HostMemory {
  readonly total: number;
  readonly free: number;
  readonly available: number;
}

/**
 * Opens a session over `stream`, which it owns from here on: a stream that fails, ends, or carries
 * what is not the protocol ends the session. Throws `LibvirtRefusedError` when libvirt asks for
 * authentication or is too old. `signal` is for the opening alone; aborted, it ends the stream.
 */
export async function openLibvirt(
  stream: Duplex,
  options: LibvirtOptions,
  signal: AbortSignal,
): Promise<LibvirtClient> {
  const connection = new Connection(stream, options.timers, options);
  try {
    const version = await shakeHands(connection, options.uri ?? 'qemu:///system', signal);
    return new LibvirtClient(connection, version);
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** An open session. Fails with `LibvirtError` where libvirt says no. */
export class LibvirtClient {
  /** Version of libvirt on the host, such as `9.0.0`. */
  readonly version: string;
  readonly #connection: Connection;

  constructor(connection: Connection, version: string) {
    this.#connection = connection;
    this.version = version;
  }

  /** Resolves with the reason when the session has ended, whoever ended it; never rejects. */
  get ended(): Promise<Error> {
    return this.#connection.ended;
  }

  /** The session has ended: every further call fails at once. */
  get isEnded(): boolean {
    return this.#connection.isEnded;
  }

  /** Says goodbye and ends the stream; what is in flight fails. Idempotent. */
  close(): void {
    this.#connection.close();
  }

  /** Closes as soon as nothing is in flight. Calls that are made meanwhile are still done. */
  drain(): void {
    this.#connection.drain();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async hostname(signal: AbortSignal): Promise<string> {
    return (await this.#connection.call(CALL.connectGetHostname, undefined, signal)).hostname;
  }

  /** The canonical URI of the driver, such as `qemu:///system`. */
  async uri(signal: AbortSignal): Promise<string> {
    return (await this.#connection.call(CALL.connectGetUri, undefined, signal)).uri;
  }

  /** XML of what host and hypervisor can do. */
  async capabilities(signal: AbortSignal): Promise<string> {
    return (await this.#connection.call(CALL.connectGetCapabilities, undefined, signal)).xml;
  }

  nodeInfo(signal: AbortSignal): Promise<NodeInfo> {
    return this.#connection.call(CALL.nodeGetInfo, undefined, signal);
  }

  async hostMemory(signal: AbortSignal): Promise<HostMemory> {
    const ask = (count: number) =>
      this.#connection.call(CALL.nodeGetMemoryStats, { count, cell: ALL_CELLS, flags: 0 }, signal);
    // Asked for none, libvirt says how many there are; it refuses any other number.
    const { stats } = await ask((await ask(0)).count);
    const bytes = (field: string) => (stats.find((stat) => stat.field === field)?.kib ?? 0) * 1024;
    const free = bytes('free');
    return {
      total: bytes('total'),
      free,
      available: free + bytes('buffers') + bytes('cached'),
    };
  }

  /** Every domain, running or not. */
  async listDomains(signal: AbortSignal): Promise<readonly Domain[]> {
    const asked = { needResults: NEED_RESULTS, flags: 0 };
    return (await this.#connection.call(CALL.connectListAllDomains, asked, signal)).domains;
  }

  /** Error `noDomain` when there is none. */
  async domainByName(name: string, signal: AbortSignal): Promise<Domain> {
    return (await this.#connection.call(CALL.domainLookupByName, { name }, signal)).domain;
  }

  /** Error `noDomain` when there is none. */
  async domainByUuid(uuid: string, signal: AbortSignal): Promise<Domain> {
    return (await this.#connection.call(CALL.domainLookupByUuid, { uuid }, signal)).domain;
  }

  /**
   * Defines a domain or changes the one of the same name and UUID; does not start it. A domain of
   * the same name with another UUID is an error (`operationFailed`).
   */
  async defineDomain(xml: string, signal: AbortSignal): Promise<Domain> {
    const asked = { xml, flags: 0 };
    return (await this.#connection.call(CALL.domainDefineXmlFlags, asked, signal)).domain;
  }

  /** Error `operationInvalid` when it runs already. */
  async startDomain(domain: Domain, signal: AbortSignal): Promise<Domain> {
    const asked = { domain, flags: 0 };
    return (await this.#connection.call(CALL.domainCreateWithFlags, asked, signal)).domain;
  }

  /** Pulls the plug; error `operationInvalid` when it does not run. */
  destroyDomain(domain: Domain, signal: AbortSignal): Promise<void> {
    return this.#connection.call(CALL.domainDestroy, { domain }, signal);
  }

  /** `flags` of `UNDEFINE`; without them, a domain that has such things is not undefined. */
  undefineDomain(domain: Domain, flags: number, signal: AbortSignal): Promise<void> {
    return this.#connection.call(CALL.domainUndefineFlags, { domain, flags }, signal);
  }

  /** `state` is one of `DOMAIN_STATE`; `reason` depends on it. */
  domainState(domain: Domain, signal: AbortSignal): Promise<StateOfDomain> {
    return this.#connection.call(CALL.domainGetState, { domain, flags: 0 }, signal);
  }

  /** `flags` of `DOMAIN_XML`; 0 is the definition in use. */
  async domainXml(domain: Domain, flags: number, signal: AbortSignal): Promise<string> {
    return (await this.#connection.call(CALL.domainGetXml, { domain, flags }, signal)).xml;
  }

  /** Addresses as one `ADDRESS_SOURCE` knows them; a source that does not work is an error. */
  async domainAddresses(
    domain: Domain,
    source: (typeof ADDRESS_SOURCE)[keyof typeof ADDRESS_SOURCE],
    signal: AbortSignal,
  ): Promise<readonly DomainInterface[]> {
    const asked = { domain, source, flags: 0 };
    const answer = await this.#connection.call(CALL.domainInterfaceAddresses, asked, signal);
    return answer.interfaces;
  }

  /**
   * The metadata element of namespace `uri`; error `noDomainMetadata` when there is none. `affect`
   * of `AFFECT`; 0 is the definition in use.
   */
  async domainMetadata(
    domain: Domain,
    uri: string,
    affect: number,
    signal: AbortSignal,
  ): Promise<string> {
    const asked = { domain, type: METADATA_ELEMENT, uri, flags: affect };
    return (await this.#connection.call(CALL.domainGetMetadata, asked, signal)).xml;
  }

  /**
   * Replaces the metadata element of namespace `uri`, or removes it (`xml` null). `affect` of
   * `AFFECT`: `config` for the stored definition, with `live` also for the one that runs.
   */
  setDomainMetadata(
    domain: Domain,
    element: { readonly uri: string; readonly prefix: string; readonly xml: string | null },
    affect: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { uri, prefix: key, xml: metadata } = element;
    const asked = { domain, type: METADATA_ELEMENT, metadata, key, uri, flags: affect };
    return this.#connection.call(CALL.domainSetMetadata, asked, signal);
  }

  async hasManagedSave(domain: Domain, signal: AbortSignal): Promise<boolean> {
    const asked = { domain, flags: 0 };
    return (
      (await this.#connection.call(CALL.domainHasManagedSaveImage, asked, signal)).present !== 0
    );
  }

  removeManagedSave(domain: Domain, signal: AbortSignal): Promise<void> {
    return this.#connection.call(CALL.domainManagedSaveRemove, { domain, flags: 0 }, signal);
  }

  /** Error `noStoragePool` when there is none. */
  async poolByName(name: string, signal: AbortSignal): Promise<Pool> {
    return (await this.#connection.call(CALL.poolLookupByName, { name }, signal)).pool;
  }

  /** `state` is one of `POOL_STATE`; sizes in bytes, as of the last refresh. */
  poolInfo(pool: Pool, signal: AbortSignal): Promise<PoolInfo> {
    return this.#connection.call(CALL.poolGetInfo, { pool }, signal);
  }

  async poolXml(pool: Pool, signal: AbortSignal): Promise<string> {
    return (await this.#connection.call(CALL.poolGetXml, { pool, flags: 0 }, signal)).xml;
  }

  /** Reads the pool anew: sizes, and files that others made. Error while a volume is written. */
  refreshPool(pool: Pool, signal: AbortSignal): Promise<void> {
    return this.#connection.call(CALL.poolRefresh, { pool, flags: 0 }, signal);
  }

  /** As of the last refresh. */
  async listVolumes(pool: Pool, signal: AbortSignal): Promise<readonly Volume[]> {
    const asked = { pool, needResults: NEED_RESULTS, flags: 0 };
    return (await this.#connection.call(CALL.poolListAllVolumes, asked, signal)).volumes;
  }

  /** Error `noStorageVolume` when there is none. */
  async volumeByName(pool: Pool, name: string, signal: AbortSignal): Promise<Volume> {
    return (await this.#connection.call(CALL.volumeLookupByName, { pool, name }, signal)).volume;
  }

  /** Error `storageVolumeExists` when there is one of this name. */
  async createVolume(pool: Pool, xml: string, signal: AbortSignal): Promise<Volume> {
    return (await this.#connection.call(CALL.volumeCreateXml, { pool, xml, flags: 0 }, signal))
      .volume;
  }

  deleteVolume(volume: Volume, signal: AbortSignal): Promise<void> {
    return this.#connection.call(CALL.volumeDelete, { volume, flags: 0 }, signal);
  }

  /** Sizes in bytes. */
  volumeInfo(volume: Volume, signal: AbortSignal): Promise<VolumeInfo> {
    return this.#connection.call(CALL.volumeGetInfo, { volume }, signal);
  }

  async volumeXml(volume: Volume, signal: AbortSignal): Promise<string> {
    return (await this.#connection.call(CALL.volumeGetXml, { volume, flags: 0 }, signal)).xml;
  }

  async volumePath(volume: Volume, signal: AbortSignal): Promise<string> {
    return (await this.#connection.call(CALL.volumeGetPath, { volume }, signal)).path;
  }

  /**
   * Writes `source` into the volume and resolves with the number of bytes once libvirt has taken
   * them all. With `length`, a source that has fewer or more bytes is a `LibvirtUploadError`; the
   * volume then holds a part of it. Use a session of its own for an upload: while the host's disk
   * is slow, nothing else gets through on the same one.
   */
  upload(
    volume: Volume,
    source: Bytes,
    options: UploadOptions,
    signal: AbortSignal,
  ): Promise<number> {
    return upload(this.#connection, volume, source, options, signal);
  }

  /** Error `noNetwork` when there is none. */
  async networkByName(name: string, signal: AbortSignal): Promise<Network> {
    return (await this.#connection.call(CALL.networkLookupByName, { name }, signal)).network;
  }

  async isNetworkActive(network: Network, signal: AbortSignal): Promise<boolean> {
    return (await this.#connection.call(CALL.networkIsActive, { network }, signal)).active !== 0;
  }

  /** Leases of the network's DHCP server; those of one MAC address, or all (null). */
  async networkLeases(
    network: Network,
    mac: string | null,
    signal: AbortSignal,
  ): Promise<readonly DhcpLease[]> {
    const asked = { network, mac, needResults: NEED_RESULTS, flags: 0 };
    return (await this.#connection.call(CALL.networkGetDhcpLeases, asked, signal)).leases;
  }
}
