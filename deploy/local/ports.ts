/** Ports of the stack: taken ones are found before anything starts. */
import { createServer } from 'node:net';
import { errnoOf, StartFault } from './fault.ts';

export const LOOPBACK = '127.0.0.1';

/**
 * The port to use for `flag`: the given one when it is free on 127.0.0.1, or any free one for 0.
 * Throws a `StartFault` that names the flag. The port is let go again: whoever uses it reports
 * the rare case that another took it in between.
 */
export function choosePort(flag: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => {
      reject(new StartFault(portProblem(flag, port, errnoOf(error)), { cause: error }));
    });
    server.listen({ host: LOOPBACK, port, exclusive: true }, () => {
      const address = server.address();
      server.close(() => {
        if (typeof address === 'object' && address !== null) resolve(address.port);
        else reject(new StartFault(`${flag}: no port could be had`));
      });
    });
  });
}

function portProblem(flag: string, port: number, code: string | undefined): string {
  if (code === 'EADDRINUSE') {
    return `${flag}: port ${port} is in use on ${LOOPBACK}; end what listens there or choose another`;
  }
  if (code === 'EACCES') return `${flag}: port ${port} needs privileges; choose one above 1023`;
  return `${flag}: port ${port} cannot be listened on (${code ?? 'unknown error'})`;
}
