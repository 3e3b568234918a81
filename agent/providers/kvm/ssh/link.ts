/**
 * One SSH connection to a host, and streams to sockets behind it. It ends when it is dead, when it
 * is closed, or, once retired, with its last stream.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Client } from 'ssh2';
import type { Clock } from '#shared/clock.ts';
import { SshError } from './errors.ts';

export class SshLink {
  /** Resolves with the reason when the connection is no more; never rejects. */
  readonly ended: Promise<SshError>;
  readonly #client: Client;
  readonly #socket: Socket;
  readonly #host: string;
  readonly #clock: Clock;
  #end: SshError | undefined;
  #onEnd: (reason: SshError) => void = () => undefined;
  #retired = false;
  /** What tells those that wait for a stream to open. */
  readonly #openings = new Set<(error: SshError) => void>();
  /** Streams that are open or being opened. */
  #streams = 0;

  /** `client` is ready and speaks over `socket`; `host` is how messages name it. */
  constructor(client: Client, socket: Socket, host: string, clock: Clock) {
    this.#client = client;
    this.#socket = socket;
    this.#host = host;
    this.#clock = clock;
    this.ended = new Promise((resolve) => {
      this.#onEnd = resolve;
    });
    let cause: Error | undefined;
    client.on('error', (error: Error) => {
      cause = error;
    });
    client.on('close', () => {
      const why = cause === undefined ? 'the host closed it' : cause.message;
      this.#finish(new SshError('lost', `the connection to ${host} was lost: ${why}`, { cause }));
    });
  }

  get isEnded(): boolean {
    return this.#end !== undefined;
  }

  /**
   * A stream to a Unix socket on the host. An abort or a deadline gives up on it alone; one that
   * opens late is closed.
   */
  openSocket(path: string, timeoutMs: number, signal: AbortSignal): Promise<Duplex> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#end !== undefined) throw this.#end;
      let waiting = true;
      const give = (settle: () => void) => {
        if (!waiting) return;
        waiting = false;
        timer.cancel();
        this.#openings.delete(fail);
        signal.removeEventListener('abort', onAbort);
        settle();
      };
      const fail = (error: unknown) => give(() => reject(error));
      const onAbort = () => fail(signal.reason);
      const timer = this.#clock.setTimer(() => {
        const where = `${path} on ${this.#host}`;
        fail(new SshError('unreachable', `${where} was not opened within ${timeoutMs} ms`));
      }, timeoutMs);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#openings.add(fail);
      this.#streams++;
      try {
        this.#client.openssh_forwardOutStreamLocal(path, (error, stream) => {
          if (error !== undefined) {
            this.#streamEnded();
            fail(this.#refusal(path, error));
            return;
          }
          // For good: it may fail after whoever uses it has let go.
          stream.on('error', () => undefined);
          stream.once('close', () => this.#streamEnded());
          if (waiting) give(() => resolve(stream));
          else stream.close();
        });
      } catch (error) {
        // A client that has just lost its connection says so like this.
        this.#streamEnded();
        fail(new SshError('lost', `the connection to ${this.#host} was lost`, { cause: error }));
      }
    });
  }

  /** No new user: the connection ends when its streams have. Idempotent. */
  retire(): void {
    this.#retired = true;
    if (this.#streams === 0) this.close();
  }

  /** Ends it, and its streams with it. Idempotent. */
  close(): void {
    this.#client.end();
    // The client itself would now wait for the other side, for ever if that is gone. Goodbye is
    // written by then.
    setImmediate(() => this.#socket.destroy());
    this.#finish(new SshError('closed', `the connection to ${this.#host} was closed`));
  }

  #streamEnded(): void {
    this.#streams--;
    if (this.#retired && this.#streams === 0) this.close();
  }

  /** sshd tells nothing of the reason. */
  #refusal(path: string, cause: Error): SshError {
    const message =
      `${this.#host} does not open ${path}: is libvirtd running, may the user use its socket ` +
      '(group libvirt), and does sshd allow it (AllowStreamLocalForwarding)?';
    return new SshError('socket', message, { cause });
  }

  #finish(reason: SshError): void {
    if (this.#end !== undefined) return;
    this.#end = reason;
    for (const fail of [...this.#openings]) fail(reason);
    this.#onEnd(reason);
  }
}
