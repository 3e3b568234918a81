/**
 * Addresses of pods: 127.42.0.0/16, all of which Linux answers for on the loopback interface. An
 * address is held by an abstract Unix socket of its name: like the addresses, such names belong to
 * the network namespace, so two stacks on one machine never share one, and the kernel lets
 * go of it when the holder dies.
 */
import { createServer, type Server } from 'node:net';
import { errnoOf } from '../fault.ts';

/** First and last host part: .0.0 and .0.1 stay free, as does the top of the range. */
const HOST_MIN = 2;
const HOST_MAX = 0xfffe;
const PREFIX = '127.42';
const ADDRESS_PATTERN = /^127\.42\.(\d{1,3})\.(\d{1,3})$/;

export interface PodAddress {
  readonly ip: string;
  release(): void;
}

export interface AddressPool {
  /**
   * An address that no pod of this machine has and on whose `ports` nothing listens; `wanted` when
   * that one is still free. Rejects when the range is used up.
   */
  acquire(ports: readonly number[], wanted?: string): Promise<PodAddress>;
}

/** Hands addresses out in order, so that one that was let go is used again as late as possible. */
export function createAddressPool(): AddressPool {
  let next = HOST_MIN;
  return {
    async acquire(ports, wanted) {
      const host = wanted === undefined ? undefined : hostPart(wanted);
      if (wanted !== undefined && host !== undefined) {
        // What comes next is new, and not what another pod has just let go of.
        next = Math.max(next, Math.min(host + 1, HOST_MAX));
        const address = await hold(wanted, ports);
        if (address !== undefined) return address;
      }
      for (let tries = HOST_MIN; tries <= HOST_MAX; tries++) {
        const ip = podAddress(next);
        next = next === HOST_MAX ? HOST_MIN : next + 1;
        // The last octets 0 and 255 look like a network and a broadcast address to some tools.
        if (/\.(0|255)$/.test(ip)) continue;
        const address = await hold(ip, ports);
        if (address !== undefined) return address;
      }
      throw new Error(`every address of ${PREFIX}.0.0/16 is in use`);
    },
  };
}

/** `127.42.x.y` of a host part. */
function podAddress(host: number): string {
  return `${PREFIX}.${host >> 8}.${host & 0xff}`;
}

/** Host part of an address that this pool hands out; undefined for every other text. */
export function hostPart(ip: string): number | undefined {
  const match = ADDRESS_PATTERN.exec(ip);
  if (match === null) return undefined;
  const [high, low] = [Number(match[1]), Number(match[2])];
  const host = high * 256 + low;
  const usable = high <= 255 && low > 0 && low < 255 && host >= HOST_MIN && host <= HOST_MAX;
  return usable ? host : undefined;
}

async function hold(ip: string, ports: readonly number[]): Promise<PodAddress | undefined> {
  const holder = await listen({ path: `\0egress-pod/${ip}` });
  if (holder === undefined) return undefined;
  holder.unref();
  try {
    for (const port of ports) {
      const probe = await listen({ host: ip, port });
      if (probe === undefined) {
        holder.close();
        return undefined;
      }
      await new Promise<void>((resolve) => probe.close(() => resolve()));
    }
  } catch (error) {
    holder.close();
    throw error;
  }
  return { ip, release: () => void holder.close() };
}

/** undefined when another has it; every other trouble is the same at each address. */
function listen(
  at: { path: string } | { host: string; port: number },
): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error) => {
      if (errnoOf(error) === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen({ ...at, exclusive: true }, () => resolve(server));
  });
}
