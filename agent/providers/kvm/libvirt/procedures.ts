/**
 * The procedures of libvirt's remote protocol that this client calls: name, number, arguments and
 * result, as in libvirt's `remote_protocol.x`. One more is one more row.
 */
import {
  array,
  fixedText,
  type Infer,
  int32,
  nothing,
  nullableText,
  option,
  size,
  struct,
  text,
  uint32,
  uuid,
  type XdrType,
} from './xdr.ts';

/** A procedure with the types of what it takes and gives. */
export interface Procedure<Arguments, Result> {
  readonly number: number;
  readonly arguments: XdrType<Arguments>;
  readonly result: XdrType<Result>;
}

/** Longest lists that libvirt sends (`REMOTE_*_LIST_MAX`). */
const LIST_MAX = 16_384;
const LEASES_MAX = 65_536;
const INTERFACES_MAX = 2048;
const MEMORY_STATS_MAX = 16;
const AUTH_TYPES_MAX = 20;

const domain = struct('domain', { name: text, uuid, id: int32() });
const network = struct('network', { name: text, uuid });
const pool = struct('pool', { name: text, uuid });
const volume = struct('volume', { pool: text, name: text, key: text });

/** Body of every answer whose status is an error (`remote_error`). */
export const remoteError = struct('error', {
  code: int32(),
  domain: int32(),
  message: nullableText,
  level: int32(),
  dom: option(domain),
  str1: nullableText,
  str2: nullableText,
  str3: nullableText,
  int1: int32(),
  int2: int32(),
  net: option(network),
});

const lease = struct('lease', {
  interface: text,
  expiresAtSeconds: size,
  type: int32(),
  mac: nullableText,
  iaid: nullableText,
  address: text,
  prefix: uint32(),
  hostname: nullableText,
  clientId: nullableText,
});

const domainInterface = struct('interface', {
  name: text,
  mac: nullableText,
  addresses: array(
    struct('address', { type: int32(), address: text, prefix: uint32() }),
    INTERFACES_MAX,
  ),
});

const flags = uint32();
const onDomain = struct('arguments', { domain });
const onDomainWithFlags = struct('arguments', { domain, flags });
const xmlWithFlags = struct('result', { xml: text });
const oneDomain = struct('result', { domain });
const oneVolume = struct('result', { volume });
const byName = struct('arguments', { name: text });
const onVolume = struct('arguments', { volume });

export const PROCEDURES = {
  connectOpen: procedure(1, struct('arguments', { uri: nullableText, flags }), nothing),
  connectClose: procedure(2, nothing, nothing),
  nodeGetInfo: procedure(
    6,
    nothing,
    struct('result', {
      model: fixedText(32),
      memoryKib: size,
      cpus: int32(),
      mhz: int32(),
      nodes: int32(),
      sockets: int32(),
      cores: int32(),
      threads: int32(),
    }),
  ),
  connectGetCapabilities: procedure(7, nothing, struct('result', { xml: text })),
  domainDestroy: procedure(12, onDomain, nothing),
  domainGetXml: procedure(14, onDomainWithFlags, xmlWithFlags),
  domainLookupByName: procedure(23, byName, oneDomain),
  domainLookupByUuid: procedure(24, struct('arguments', { uuid }), oneDomain),
  networkLookupByName: procedure(46, byName, struct('result', { network })),
  connectGetHostname: procedure(59, nothing, struct('result', { hostname: text })),
  connectSupportsFeature: procedure(
    60,
    struct('arguments', { feature: int32() }),
    struct('result', { supported: int32() }),
  ),
  authList: procedure(66, nothing, struct('result', { types: array(int32(), AUTH_TYPES_MAX) })),
  poolRefresh: procedure(83, struct('arguments', { pool, flags }), nothing),
  poolLookupByName: procedure(84, byName, struct('result', { pool })),
  poolGetInfo: procedure(
    87,
    struct('arguments', { pool }),
    struct('result', { state: uint32(), capacity: size, allocation: size, available: size }),
  ),
  poolGetXml: procedure(88, struct('arguments', { pool, flags }), xmlWithFlags),
  volumeCreateXml: procedure(93, struct('arguments', { pool, xml: text, flags }), oneVolume),
  volumeDelete: procedure(94, struct('arguments', { volume, flags }), nothing),
  volumeLookupByName: procedure(95, struct('arguments', { pool, name: text }), oneVolume),
  volumeGetInfo: procedure(
    98,
    onVolume,
    struct('result', { type: int32(), capacity: size, allocation: size }),
  ),
  volumeGetXml: procedure(99, struct('arguments', { volume, flags }), xmlWithFlags),
  volumeGetPath: procedure(100, onVolume, struct('result', { path: text })),
  nodeGetFreeMemory: procedure(102, nothing, struct('result', { bytes: size })),
  connectGetUri: procedure(110, nothing, struct('result', { uri: text })),
  networkIsActive: procedure(
    152,
    struct('arguments', { network }),
    struct('result', { active: int32() }),
  ),
  connectGetLibVersion: procedure(157, nothing, struct('result', { version: size })),
  domainHasManagedSaveImage: procedure(
    183,
    onDomainWithFlags,
    struct('result', { present: int32() }),
  ),
  domainManagedSaveRemove: procedure(184, onDomainWithFlags, nothing),
  domainCreateWithFlags: procedure(196, onDomainWithFlags, oneDomain),
  volumeUpload: procedure(
    208,
    struct('arguments', { volume, offset: size, length: size, flags }),
    nothing,
  ),
  domainGetState: procedure(
    212,
    onDomainWithFlags,
    struct('result', { state: int32(), reason: int32() }),
  ),
  nodeGetMemoryStats: procedure(
    228,
    struct('arguments', { count: int32(), cell: int32(), flags }),
    struct('result', {
      stats: array(struct('stat', { field: text, kib: size }), MEMORY_STATS_MAX),
      count: int32(),
    }),
  ),
  domainUndefineFlags: procedure(231, onDomainWithFlags, nothing),
  domainSetMetadata: procedure(
    264,
    struct('arguments', {
      domain,
      type: int32(),
      metadata: nullableText,
      key: nullableText,
      uri: nullableText,
      flags,
    }),
    nothing,
  ),
  domainGetMetadata: procedure(
    265,
    struct('arguments', { domain, type: int32(), uri: nullableText, flags }),
    xmlWithFlags,
  ),
  connectListAllDomains: procedure(
    273,
    struct('arguments', { needResults: int32(), flags }),
    struct('result', { domains: array(domain, LIST_MAX), count: uint32() }),
  ),
  poolListAllVolumes: procedure(
    282,
    struct('arguments', { pool, needResults: int32(), flags }),
    struct('result', { volumes: array(volume, LIST_MAX), count: uint32() }),
  ),
  networkGetDhcpLeases: procedure(
    341,
    struct('arguments', { network, mac: nullableText, needResults: int32(), flags }),
    struct('result', { leases: array(lease, LEASES_MAX), count: uint32() }),
  ),
  domainDefineXmlFlags: procedure(350, struct('arguments', { xml: text, flags }), oneDomain),
  domainInterfaceAddresses: procedure(
    353,
    struct('arguments', { domain, source: uint32(), flags }),
    struct('result', { interfaces: array(domainInterface, INTERFACES_MAX) }),
  ),
} as const;

/** A domain as libvirt names it; `id` is -1 while it does not run. */
export type Domain = Infer<typeof domain>;
export type Network = Infer<typeof network>;
export type Pool = Infer<typeof pool>;
/** A volume; `key` is its path in pools of files. */
export type Volume = Infer<typeof volume>;
export type DhcpLease = Infer<typeof lease>;
export type DomainInterface = Infer<typeof domainInterface>;
export type NodeInfo = Infer<typeof PROCEDURES.nodeGetInfo.result>;
export type PoolInfo = Infer<typeof PROCEDURES.poolGetInfo.result>;
export type VolumeInfo = Infer<typeof PROCEDURES.volumeGetInfo.result>;
export type StateOfDomain = Infer<typeof PROCEDURES.domainGetState.result>;

function procedure<Arguments, Result>(
  number: number,
  argumentsType: XdrType<Arguments>,
  result: XdrType<Result>,
): Procedure<Arguments, Result> {
  return { number, arguments: argumentsType, result };
}
