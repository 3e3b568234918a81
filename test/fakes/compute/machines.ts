/**
 * Real servers behind the addresses of fake instances: each is a forward proxy on an address of
 * its own in 127.0.0.0/8 that listens where its user-data says, as a machine does.
 */
import { type Listening, listenForwardProxy } from '../proxies.ts';
import type { Hypervisor, Instance } from './project.ts';
import { listOf, objectOf } from './validate.ts';

export interface Machines extends Required<Hypervisor> {
  /** What runs for instances of the name. */
  serversOf(name: string): string[];
  /** The server of an instance dies; answers whether there was one. */
  kill(address: string): boolean;
  close(): Promise<void>;
}

const LISTENS = /listens on (\d+)/;
const SUBNET = 77;

/** @param subnet second part of the addresses: worlds at the same time must not share one. */
export function startMachines(subnet: number = SUBNET): Machines {
  const servers = new Map<string, { name: string; starting: Promise<Listening | undefined> }>();

  let count = 0;

  async function end(address: string): Promise<void> {
    const server = servers.get(address);
    servers.delete(address);
    await (await server?.starting)?.close();
  }

  return {
    nextAddress() {
      const nth = count++;
      return `127.${subnet}.${Math.floor(nth / 250)}.${(nth % 250) + 2}`;
    },
    started(instance) {
      const port = Number(LISTENS.exec(userDataOf(instance))?.[1]);
      // One that nobody set up listens nowhere.
      if (!Number.isInteger(port)) return;
      const host = instance.externalIP;
      const starting = listenForwardProxy({ at: { host, port } }).catch(() => undefined);
      servers.set(host, { name: instance.name, starting });
    },
    stopped: ({ externalIP }) => void end(externalIP),
    serversOf: (name) =>
      [...servers].filter(([, server]) => server.name === name).map(([address]) => address),
    kill(address) {
      const known = servers.has(address);
      void end(address);
      return known;
    },
    async close() {
      await Promise.all([...servers.keys()].map(end));
    },
  };
}

function userDataOf({ body }: Instance): string {
  const items = listOf(objectOf(body['metadata'])['items']);
  const value = items.find((item) => item['key'] === 'user-data')?.['value'];
  return typeof value === 'string' ? value : '';
}
