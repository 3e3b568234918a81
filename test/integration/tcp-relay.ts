/** A relay in front of a server that can break as networks do: refuse, or go silent. */
import { connect, createServer, type Socket } from 'node:net';

export interface TcpRelay {
  readonly port: number;
  /** Connections refused so far. */
  readonly refused: number;
  /** Ends every connection and refuses new ones until `repair`. */
  cut(): void;
  /** Lets no byte through on present connections, without closing them. New ones work. */
  silence(): void;
  repair(): void;
  close(): Promise<void>;
}

export async function startTcpRelay(targetPort: number): Promise<TcpRelay> {
  const pairs = new Set<{ near: Socket; far: Socket }>();
  let isCut = false;
  let refused = 0;
  const server = createServer((near) => {
    if (isCut) {
      refused++;
      near.resetAndDestroy();
      return;
    }
    const far = connect(targetPort, '127.0.0.1');
    const pair = { near, far };
    pairs.add(pair);
    const end = () => {
      near.destroy();
      far.destroy();
      pairs.delete(pair);
    };
    for (const socket of [near, far]) socket.once('error', end).once('close', end);
    near.pipe(far);
    far.pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    get refused() {
      return refused;
    },
    cut() {
      isCut = true;
      for (const { near } of pairs) near.resetAndDestroy();
    },
    silence() {
      for (const { near, far } of pairs) {
        near.unpipe(far);
        far.unpipe(near);
        near.pause();
        far.pause();
      }
    },
    repair() {
      isCut = false;
    },
    close: () =>
      new Promise((resolve) => {
        for (const { near } of pairs) near.destroy();
        server.close(() => resolve());
      }),
  };
}
