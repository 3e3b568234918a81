/** Which address of a machine its proxy is reached at. */
import { BlockList } from 'node:net';
import {
  ADDRESS_SOURCE,
  ADDRESS_TYPE,
  type Domain,
  type DomainInterface,
  LibvirtError,
} from './libvirt/client.ts';
import type { Libvirt } from './libvirt-port.ts';

/** In this order: what the network gave out, whom it has seen, what the guest says of itself. */
const SOURCES = [ADDRESS_SOURCE.lease, ADDRESS_SOURCE.arp, ADDRESS_SOURCE.agent] as const;

/** Nobody can be reached at these from another machine. */
const UNROUTABLE = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 3],
] as const) {
  UNROUTABLE.addSubnet(network, prefix);
}

/** The first routable IPv4 address of an interface with one of `macs`: not of a bridge within. */
export function chooseAddress(
  interfaces: readonly DomainInterface[],
  macs: readonly string[],
): string | undefined {
  return interfaces
    .filter(({ mac }) => mac !== null && macs.includes(mac.toLowerCase()))
    .flatMap(({ addresses }) => addresses)
    .filter(({ type }) => type === ADDRESS_TYPE.ipv4)
    .map(({ address }) => address)
    .find((address) => !UNROUTABLE.check(address));
}

/**
 * Asks one source after the other. A source that libvirt cannot ask (no agent in the guest, an ARP
 * table in a form that it does not know) hides nothing of the others.
 */
export async function addressOf(
  libvirt: Pick<Libvirt, 'domainAddresses'>,
  domain: Domain,
  macs: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const source of SOURCES) {
    try {
      const found = chooseAddress(await libvirt.domainAddresses(domain, source, signal), macs);
      if (found !== undefined) return found;
    } catch (error) {
      if (!(error instanceof LibvirtError)) throw error;
    }
  }
  return undefined;
}
