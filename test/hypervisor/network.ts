/** The way to a hypervisor host: a pair of virtual interfaces, and a route to its guests. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Addresses } from './folder.ts';

const run = promisify(execFile);
/** Hosts that can run on one machine at once. */
const HOSTS_MAX = 60;
const GUEST_NETWORK_FIRST = 100;

export interface Connected {
  readonly addresses: Addresses;
  /** Gives the other interface of the pair, `eth0`, to the namespace of a process. */
  begin(pid: number): Promise<void>;
  /** Sends what is for its guests to the host; works once the host is up. */
  route(): Promise<void>;
  /** Takes all of it away at once; the kernel takes its time. Idempotent. */
  remove(): Promise<void>;
}

/**
 * Takes the first number that is free on this machine, for all runs of all checkouts. Both
 * interfaces go when the host's namespace does, and the route with them.
 */
export async function connectHost(): Promise<Connected> {
  for (let number = 0; number < HOSTS_MAX; number++) {
    const [outside, inside] = [`hv${number}-out`, `hv${number}-in`];
    try {
      await ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', inside);
    } catch (error) {
      if (String(error).includes('File exists')) continue;
      throw error;
    }
    const addresses = {
      gateway: `10.201.${number}.1`,
      host: `10.201.${number}.2`,
      guestNetwork: `192.168.${GUEST_NETWORK_FIRST + number}`,
    };
    return {
      addresses,
      async begin(pid) {
        await ip('link', 'set', inside, 'netns', String(pid), 'name', 'eth0');
        await ip('addr', 'add', `${addresses.gateway}/30`, 'dev', outside);
        await ip('link', 'set', outside, 'up');
      },
      async route() {
        await ip('route', 'add', `${addresses.guestNetwork}.0/24`, 'via', addresses.host);
      },
      async remove() {
        await ip('link', 'del', outside).catch(() => undefined);
      },
    };
  }
  throw new Error(`${HOSTS_MAX} hypervisor hosts run on this machine already`);
}

async function ip(...args: readonly string[]): Promise<void> {
  await run('ip', [...args]);
}
