/** Numbers of libvirt that a caller needs, by the names of its enums. */

/** `virDomainState`. */
export const DOMAIN_STATE = {
  none: 0,
  running: 1,
  blocked: 2,
  paused: 3,
  shutdown: 4,
  shutoff: 5,
  crashed: 6,
  suspended: 7,
} as const;

/** `virStoragePoolState`. */
export const POOL_STATE = {
  inactive: 0,
  building: 1,
  running: 2,
  degraded: 3,
  inaccessible: 4,
} as const;

/** Where libvirt takes addresses of a domain from (`virDomainInterfaceAddressesSource`). */
export const ADDRESS_SOURCE = { lease: 0, agent: 1, arp: 2 } as const;

/** `type` of an address or a lease (`virIPAddrType`). */
export const ADDRESS_TYPE = { ipv4: 0, ipv6: 1 } as const;

/** What goes with a domain that is undefined (`virDomainUndefineFlagsValues`). */
export const UNDEFINE = { managedSave: 1, snapshots: 2, nvram: 4 } as const;

/** `virDomainXMLFlags`. */
export const DOMAIN_XML = { inactive: 2 } as const;

/** Which of a domain's definitions a change is about (`virDomainModificationImpact`). */
export const AFFECT = { live: 1, config: 2 } as const;
