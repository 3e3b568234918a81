/**
 * libvirt on one host, in memory: domains, one pool, one network, and a guest that has an address
 * as soon as its domain runs. Sessions can be made to fail, or to die, at any call.
 */
import { randomUUID } from 'node:crypto';
import type { Hosts } from '#agent/providers/kvm/hosts.ts';
import {
  ADDRESS_SOURCE,
  ADDRESS_TYPE,
  DOMAIN_STATE,
  type Domain,
  ERROR_CODE,
  LibvirtError,
  POOL_STATE,
  type Volume,
} from '#agent/providers/kvm/libvirt/client.ts';
import type { Libvirt } from '#agent/providers/kvm/libvirt-port.ts';

const GIB = 1024 ** 3;
const POOL = { name: 'default', uuid: randomUUID() };
const NETWORK = { name: 'default', uuid: randomUUID() };
const METADATA = /<(\w+):machine xmlns:\1=[^>]*>.*<\/\1:machine>/s;

export interface FakeDomain {
  readonly uuid: string;
  name: string;
  xml: string;
  state: number;
  reason: number;
}

export interface FakeVolume {
  readonly xml: string;
  content: Buffer;
  changedAtMs: number;
}

export class FakeLibvirtHost {
  readonly domains = new Map<string, FakeDomain>();
  readonly volumes = new Map<string, FakeVolume>();
  /** Names of the calls so far. */
  readonly calls: string[] = [];
  poolState: number = POOL_STATE.running;
  networkActive = true;
  poolFree = 100 * GIB;
  memoryAvailable = 32 * GIB;
  /** Of guests that run; undefined: they never get one. */
  address: string | undefined = '192.168.150.100';
  /** Addresses are known to this source alone; the others fail. */
  addressSource: number = ADDRESS_SOURCE.lease;
  nowMs: () => number = () => 0;

  /** Names of volumes, in the order of the alphabet. */
  get volumeNames(): string[] {
    return [...this.volumes.keys()].sort();
  }

  /** Sessions of a process to which `before` and `after` each call happens. */
  hosts(hooks: SessionHooks = {}): Hosts {
    const session = this.session(hooks);
    return {
      async call(_host, signal, use) {
        signal.throwIfAborted();
        return use(session, signal);
      },
      async dedicated(_host, signal, use) {
        signal.throwIfAborted();
        return use(session, signal);
      },
    };
  }

  session({ before, after }: SessionHooks = {}): Libvirt {
    const libvirt = this.#libvirt();
    return new Proxy(libvirt, {
      get: (target, key: keyof Libvirt) => {
        const method: unknown = target[key];
        if (typeof method !== 'function') return method;
        return async (...args: unknown[]) => {
          await before?.(key);
          const signal = args.at(-1);
          if (signal instanceof AbortSignal) signal.throwIfAborted();
          this.calls.push(key);
          const answer: unknown = await method.apply(target, args);
          await after?.(key);
          return answer;
        };
      },
    });
  }

  #domain({ name }: { readonly name: string }): FakeDomain {
    return this.domains.get(name) ?? refuse('noDomain', `no domain with matching name '${name}'`);
  }

  #volume(name: string): FakeVolume {
    return this.volumes.get(name) ?? refuse('noStorageVolume', `no storage vol '${name}'`);
  }

  #active(): void {
    if (this.poolState !== POOL_STATE.running) {
      refuse('operationInvalid', "storage pool 'default' is not active");
    }
  }

  #set(name: string, state: number, expected: boolean): void {
    const domain = this.#domain({ name });
    if ((domain.state === DOMAIN_STATE.running) !== expected) {
      refuse('operationInvalid', expected ? 'domain is not running' : 'domain is already running');
    }
    Object.assign(domain, { state, reason: 0 });
  }

  #libvirt(): Libvirt {
    const host = this;
    const handle = ({ name, uuid, state }: FakeDomain): Domain => ({
      name,
      uuid,
      id: state === DOMAIN_STATE.running ? 1 : -1,
    });
    const volumeOf = (name: string): Volume => ({ pool: POOL.name, name, key: `/pool/${name}` });
    const only = (wanted: string, name: string, code: 'noStoragePool' | 'noNetwork') =>
      wanted === name ? undefined : refuse(code, `no '${name}'`);
    return {
      version: '9.0.0',
      hostname: async () => 'hv1.example.net',
      uri: async () => 'qemu:///system',
      capabilities: async () =>
        "<capabilities><guest><arch name='x86_64'><domain type='kvm'/></arch></guest></capabilities>",
      nodeInfo: async () => refuse('noSupport', 'not here'),
      hostMemory: async () => ({
        total: 64 * GIB,
        free: host.memoryAvailable,
        available: host.memoryAvailable,
      }),
      listDomains: async () => [...host.domains.values()].map(handle),
      domainByName: async (name) => handle(host.#domain({ name })),
      domainByUuid: async (uuid) => {
        const found = [...host.domains.values()].find((each) => each.uuid === uuid);
        return handle(found ?? refuse('noDomain', `no domain with UUID ${uuid}`));
      },
      async defineDomain(xml) {
        const name = /<name>(.*?)<\/name>/.exec(xml)?.[1] ?? '';
        const uuid = /<uuid>(.*?)<\/uuid>/.exec(xml)?.[1] ?? randomUUID();
        if (host.domains.has(name)) refuse('operationFailed', `domain '${name}' already exists`);
        const domain = { name, uuid, xml, state: DOMAIN_STATE.shutoff, reason: 0 };
        host.domains.set(name, domain);
        return handle(domain);
      },
      async startDomain(domain) {
        for (const [, volume = ''] of host.#domain(domain).xml.matchAll(/volume='([^']+)'/g)) {
          host.#volume(volume);
        }
        host.#set(domain.name, DOMAIN_STATE.running, false);
        return handle(host.#domain(domain));
      },
      destroyDomain: async ({ name }) => host.#set(name, DOMAIN_STATE.shutoff, true),
      async undefineDomain(domain) {
        if (host.#domain(domain).uuid !== domain.uuid) refuse('noDomain', 'another domain');
        host.domains.delete(domain.name);
      },
      domainState: async (domain) => {
        const { state, reason } = host.#domain(domain);
        return { state, reason };
      },
      domainXml: async (domain) => host.#domain(domain).xml,
      async domainAddresses(domain, source) {
        const { xml } = host.#domain(domain);
        if (source !== host.addressSource) refuse('agentUnresponsive', 'this source does not work');
        if (host.address === undefined) return [];
        const mac = /<mac address='(.*?)'/.exec(xml)?.[1] ?? '';
        const address = { type: ADDRESS_TYPE.ipv4, address: host.address, prefix: 24 };
        return [{ name: 'vnet0', mac, addresses: [address] }];
      },
      domainMetadata: async () => refuse('noDomainMetadata', 'not here'),
      async setDomainMetadata(domain, { uri, prefix, xml }, affect) {
        const found = host.#domain(domain);
        if (affect === 1 && found.state !== DOMAIN_STATE.running) {
          refuse('operationInvalid', 'domain is not running');
        }
        const root = `<${prefix}:machine xmlns:${prefix}="${uri}">`;
        const replaced = (xml ?? '')
          .replace('<machine>', root)
          .replace('</machine>', `</${prefix}:machine>`);
        found.xml = found.xml.replace(METADATA, replaced);
      },
      hasManagedSave: async () => false,
      removeManagedSave: async () => undefined,
      poolByName: async (name) => only(POOL.name, name, 'noStoragePool') ?? POOL,
      poolInfo: async () => ({
        state: host.poolState,
        capacity: 200 * GIB,
        allocation: 0,
        available: host.poolFree,
      }),
      poolXml: async () => '<pool/>',
      refreshPool: async () => undefined,
      async listVolumes() {
        host.#active();
        return host.volumeNames.map(volumeOf);
      },
      async volumeByName(_pool, name) {
        host.#active();
        host.#volume(name);
        return volumeOf(name);
      },
      async createVolume(_pool, xml) {
        host.#active();
        const name = /<name>(.*?)<\/name>/.exec(xml)?.[1] ?? '';
        if (host.volumes.has(name)) refuse('storageVolumeExists', `storage vol '${name}' exists`);
        host.volumes.set(name, { xml, content: Buffer.alloc(0), changedAtMs: host.nowMs() });
        return volumeOf(name);
      },
      async deleteVolume({ name }) {
        host.#volume(name);
        host.volumes.delete(name);
      },
      volumeInfo: async ({ name }) => {
        const { xml } = host.#volume(name);
        const capacity = Number(/<capacity[^>]*>(\d+)</.exec(xml)?.[1] ?? 0);
        return { type: 0, capacity, allocation: 0 };
      },
      volumeXml: async ({ name }) => {
        const { xml, content, changedAtMs } = host.#volume(name);
        const seconds = changedAtMs / 1000;
        return xml
          .replace('<target>', `<physical unit='bytes'>${content.length}</physical><target>`)
          .replace(
            '</target>',
            `<timestamps><mtime>${seconds}</mtime><btime>${seconds}</btime></timestamps></target>`,
          );
      },
      volumePath: async ({ key }) => key,
      async upload({ name }, source, { length } = {}, signal) {
        const volume = host.#volume(name);
        const pieces: Uint8Array[] = [];
        for await (const piece of source) {
          signal.throwIfAborted();
          pieces.push(piece);
          volume.content = Buffer.concat(pieces);
          volume.changedAtMs = host.nowMs();
        }
        if (length !== undefined && volume.content.length !== length) {
          refuse('rpc', `${volume.content.length} bytes instead of ${length}`);
        }
        return volume.content.length;
      },
      networkByName: async (name) => only(NETWORK.name, name, 'noNetwork') ?? NETWORK,
      isNetworkActive: async () => host.networkActive,
      networkLeases: async () => [],
    };
  }
}

export interface SessionHooks {
  /** Before libvirt sees the call. */
  readonly before?: (call: keyof Libvirt) => Promise<void> | void;
  /** When libvirt has done it, and its answer is on the way. */
  readonly after?: (call: keyof Libvirt) => Promise<void> | void;
}

export function refuse(code: keyof typeof ERROR_CODE, message: string): never {
  throw new LibvirtError({ code: ERROR_CODE[code], domain: 0, level: 2, message });
}
