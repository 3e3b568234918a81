/**
 * The kvm provider: an instance is a domain of libvirt on one of the configured hosts, with a disk
 * over a base image and a NoCloud seed, both volumes of a pool of that host.
 *
 * A machine is all of its parts: it is gone when neither its domain nor any volume of it is left.
 * The domain comes first and goes last, as it carries the mark. What is under way stands in its
 * metadata, so that any process can go on with it.
 */
import type { Dispatcher } from 'undici';
import type { Clock, Random } from '#shared/clock.ts';
import { classified, type ProviderLog } from '../classified.ts';
import type { KvmProviderConfig } from '../config.ts';
import type { KvmHost } from '../config-kvm.ts';
import type { Checker, CreateRequest, Instance, Provider } from '../provider.ts';
import { HostChecker } from './check.ts';
import { classify, GoneError, UnusableError } from './classify.ts';
import { ensureMachine } from './create.ts';
import type { Hosts } from './hosts.ts';
import { type DomainRef, formatId, parseId } from './id.ts';
import { ImageStore } from './image-store.ts';
import type { Libvirt } from './libvirt-port.ts';
import {
  findDomain,
  findRemains,
  readDomains,
  remainsAmong,
  toInstance,
  toRemainder,
} from './lookup.ts';
import { type Chosen, choose } from './placement.ts';
import { listPool } from './pool.ts';
import { Preparations } from './preparation.ts';
import { disownMachine, removeMachine } from './remove.ts';
import { USER_DATA_BYTES_MAX } from './seed.ts';
import { isNameable } from './volume-names.ts';

export interface KvmProviderDeps {
  readonly hosts: Hosts;
  readonly clock: Clock;
  readonly random: Random;
  /** UUID of a new domain. */
  readonly newUuid: () => string;
  readonly log?: ProviderLog;
  /** How images are fetched; undici's own way unless told otherwise. */
  readonly dispatcher?: Dispatcher;
}

/** Dials nothing; every call goes through `deps.hosts`. */
export function createKvmProvider(
  config: KvmProviderConfig,
  deps: KvmProviderDeps,
): Provider & Checker {
  const { name, type, creationsPerMinute, kvm: block } = config;
  const { hosts, clock, random, newUuid } = deps;
  const images = new ImageStore({ hosts, clock, random, dispatcher: deps.dispatcher });
  const preparations = new Preparations({ hosts, images, block, clock, random });
  const checker = new HostChecker(hosts);

  const call = classified(name, classify, deps.log);

  function refOf(id: string): DomainRef {
    const ref = parseId(id);
    if (ref === undefined) throw new UnusableError(`"${id}" is not an id of this provider`);
    return ref;
  }

  const hostOf = ({ host }: DomainRef) => block.hosts.find((each) => each.name === host);

  async function create(request: CreateRequest, signal: AbortSignal): Promise<string> {
    const chosen = checkedChoice(request);
    const { host } = chosen;
    const { domain, machine } = await hosts.call(host, signal, (libvirt, within) =>
      ensureMachine(
        { libvirt, chosen, signal: within, newUuid, nowMs: () => clock.now() },
        request,
      ),
    );
    if (machine.phase === 'preparing') preparations.attend(host, domain);
    return formatId({ host: host.name, name: domain.name });
  }

  function checkedChoice(request: CreateRequest): Chosen {
    if (!isNameable(request.name, request)) {
      throw new UnusableError('name, UID and installation must be letters, digits and "-"');
    }
    const bytes = Buffer.byteLength(request.cloudInit ?? '');
    if (bytes > USER_DATA_BYTES_MAX) {
      throw new UnusableError(`user-data has ${bytes} bytes; ${USER_DATA_BYTES_MAX} are the most`);
    }
    const chosen = choose(request.placement, block);
    if ('problem' in chosen) throw new UnusableError(chosen.problem);
    return chosen;
  }

  async function get(id: string, signal: AbortSignal): Promise<Instance> {
    const ref = refOf(id);
    const host = hostOf(ref);
    if (host === undefined) {
      throw new UnusableError(`host ${ref.host} is not in the configuration of this provider`);
    }
    return hosts.call(host, signal, (libvirt, within) => show(libvirt, host, ref.name, within));
  }

  async function show(
    libvirt: Libvirt,
    host: KvmHost,
    machineName: string,
    signal: AbortSignal,
  ): Promise<Instance> {
    const found = await findDomain(libvirt, machineName, signal);
    const instance = found && (await toInstance(libvirt, host, found, signal));
    if (found === undefined || instance === undefined) {
      const remains = await findRemains(libvirt, host, machineName, signal);
      if (remains !== undefined) return toRemainder(libvirt, host, remains, signal);
      throw new GoneError(`host ${host.name} has no domain ${machineName}`);
    }
    const { machine } = found.definition;
    if (machine?.phase !== 'preparing') return instance;
    preparations.attend(host, found.domain);
    if (instance.state !== 'Provisioning') return instance;
    const status = preparations.status(host, machineName, machine.plan);
    return status === undefined ? instance : { ...instance, detail: status };
  }

  async function remove(id: string, signal: AbortSignal): Promise<void> {
    const ref = refOf(id);
    const host = hostOf(ref);
    // Nothing of it can be reached any more, and nobody would ever get further.
    if (host === undefined) return;
    await preparations.stop(host, ref.name, signal);
    await hosts.call(host, signal, (libvirt, within) =>
      removeMachine({ libvirt, host, clock, signal: within }, ref.name),
    );
  }

  async function disown(id: string, signal: AbortSignal): Promise<void> {
    const ref = refOf(id);
    const host = hostOf(ref);
    if (host === undefined) return;
    // A job writes what it knows of the machine, and would write the mark back.
    await preparations.stop(host, ref.name, signal);
    const found = await hosts.call(host, signal, (libvirt, within) =>
      disownMachine(libvirt, ref.name, within),
    );
    if (found?.definition.machine?.phase === 'preparing') preparations.attend(host, found.domain);
  }

  async function list(signal: AbortSignal): Promise<Instance[]> {
    const lists = await Promise.all(
      block.hosts.map((host) =>
        hosts.call(host, signal, (libvirt, within) => listHost(libvirt, host, within)),
      ),
    );
    return lists.flat();
  }

  return {
    name,
    type,
    creationsPerMinute,
    create: (request, signal) => call('create', request.name, () => create(request, signal)),
    get: (id, signal) => call('get', id, () => get(id, signal)),
    delete: (id, signal) => call('delete', id, () => remove(id, signal)),
    disown: (id, signal) => call('disown', id, () => disown(id, signal)),
    listByTag: (signal) => call('list', '', () => list(signal)),
    check: (signal) => Promise.all(block.hosts.map((host) => checker.check(host, signal))),
  };
}

/** Marked machines, and volumes of ours that belong to none. */
async function listHost(libvirt: Libvirt, host: KvmHost, signal: AbortSignal): Promise<Instance[]> {
  const { found, complete } = await readDomains(libvirt, signal);
  const marked = found.filter(({ definition }) => definition.machine?.mark !== undefined);
  const machines = await Promise.all(marked.map((each) => toInstance(libvirt, host, each, signal)));
  // A domain that cannot be read may use any of the volumes.
  const volumes = complete ? await listPool(libvirt, host, signal) : [];
  const remains = await Promise.all(
    remainsAmong(volumes, found).map((each) => toRemainder(libvirt, host, each, signal)),
  );
  const byId = new Map<string, Instance>();
  for (const each of [...machines, ...remains]) {
    if (each !== undefined && !byId.has(each.id)) byId.set(each.id, each);
  }
  return [...byId.values()];
}
