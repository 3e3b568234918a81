/** The NoCloud seed of a machine: what cloud-init in the guest reads at its first boot. Pure. */
import { stringify } from 'yaml';
import { macOf } from './domain-xml.ts';
import { buildIso } from './iso9660.ts';

/** How cloud-init finds it, whatever it is attached as. */
const VOLUME = 'cidata';
/** Far above what a Secret can hold. */
export const USER_DATA_BYTES_MAX = 4 * 1024 * 1024;
/** A valid document that asks for nothing. */
const NO_USER_DATA = '#cloud-config\n{}\n';

export interface SeedSpec {
  /** UUID of the domain: new for each machine, so that cloud-init takes each for a new one. */
  readonly uuid: string;
  readonly hostname: string;
  /** A secret. */
  readonly userData: string | undefined;
}

/** The same bytes for the same machine, so that an upload that is repeated changes nothing. */
export function buildSeed({ uuid, hostname, userData }: SeedSpec): Buffer {
  const metaData = { 'instance-id': uuid, 'local-hostname': hostname };
  // By its address: names of interfaces differ from system to system. dnsmasq and libvirt know the
  // machine by it, too.
  const network = {
    version: 2,
    ethernets: {
      primary: { match: { macaddress: macOf(uuid) }, dhcp4: true, 'dhcp-identifier': 'mac' },
    },
  };
  return buildIso(VOLUME, [
    { name: 'meta-data', content: Buffer.from(stringify(metaData)) },
    { name: 'user-data', content: Buffer.from(userData ?? NO_USER_DATA) },
    { name: 'network-config', content: Buffer.from(stringify(network)) },
  ]);
}
