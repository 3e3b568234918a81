/** The TCP connection below SSH. */
import { connect, type Socket } from 'node:net';
import process from 'node:process';

/**
 * A connection, or the attempt at one, that writes everything of one turn at once: ssh2 writes each
 * packet in three pieces, which would be three system calls. Sent without delay: else a small
 * message would wait for the acknowledgement of the one before, 40 ms a call.
 */
export function openSocket(host: string, port: number): Socket {
  const socket = connect({ host, port, noDelay: true });
  const { write } = socket;
  let gathering = false;
  // An own property: `connect` takes away what a class of ours would override.
  socket.write = ((...args: Parameters<Socket['write']>) => {
    if (!gathering) {
      gathering = true;
      socket.cork();
      process.nextTick(() => {
        gathering = false;
        socket.uncork();
      });
    }
    return write.apply(socket, args);
  }) as Socket['write'];
  return socket;
}
