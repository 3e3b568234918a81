/**
 * One connection to libvirt: calls and their answers by serial, streams, keepalive. Whatever comes
 * from the socket ends in an answer, a late answer that is ignored, or the end of the connection
 * with a reason; it never throws into an event.
 */
import type { Duplex } from 'node:stream';
import { type ConnectionEnd, LibvirtConnectionError, LibvirtError } from './errors.ts';
import { type Keepalive, type KeepaliveOptions, startKeepalive, type Timers } from './keepalive.ts';
import { PROCEDURES, type Procedure, remoteError } from './procedures.ts';
import {
  decoding,
  encodeHead,
  KEEPALIVE,
  type Message,
  MessageReader,
  PROGRAM,
  PROTOCOL_VERSION,
  STATUS,
  TYPE,
} from './wire.ts';

export type { Timers } from './keepalive.ts';

export interface CallLimits {
  /**
   * Calls that libvirt works on at once; more wait here. Its own default is 5 for a connection
   * (`max_client_requests`), the one being read included: at that number it stops reading, and then
   * keepalives go unanswered, too.
   */
  readonly callsInFlightMax?: number;
  readonly keepalive?: KeepaliveOptions;
}

/** A stream that this side writes, opened by a call. */
export interface OutStream {
  /** At most `STREAM_CHUNK_BYTES_MAX` bytes. False: wait for `drained` before the next ones. */
  write(chunk: Uint8Array): boolean;
  /** Resolves when more can be written, or the connection has ended. */
  drained(): Promise<void>;
  /** Says that this was all; `ended` then tells libvirt's verdict. */
  finish(): void;
  /** Gives the stream up; whatever libvirt says about it afterwards is ignored. */
  abort(): void;
  /** Undefined when libvirt has taken everything, else why not. Never rejects. */
  readonly ended: Promise<Error | undefined>;
}

const CALLS_IN_FLIGHT_MAX = 4;
/** Calls that wait for others; more fail at once. */
const CALLS_WAITING_MAX = 10_000;
const KEEPALIVE_DEFAULT: KeepaliveOptions = { intervalMs: 10_000, countMax: 3 };
const NO_BYTES = new Uint8Array(0);

interface Exchange {
  readonly procedure: number;
  readonly body: Uint8Array;
  /** Called with the answer or the end of the connection. */
  settle(outcome: Uint8Array | Error, serial: number): void;
}

interface StreamState {
  end(error: Error | undefined): void;
}

export class Connection {
  readonly ended: Promise<Error>;
  readonly #stream: Duplex;
  readonly #timers: Timers;
  readonly #limits: Required<CallLimits>;
  readonly #reader = new MessageReader();
  readonly #inFlight = new Map<number, Exchange>();
  readonly #waiting = new Set<Exchange>();
  readonly #streams = new Map<number, StreamState>();
  #serial = 0;
  #draining = false;
  #keepalive: Keepalive | undefined;
  #end: LibvirtConnectionError | undefined;
  #onEnd: (reason: Error) => void = () => undefined;

  constructor(stream: Duplex, timers: Timers, limits: CallLimits = {}) {
    this.#stream = stream;
    this.#timers = timers;
    this.#limits = {
      callsInFlightMax: limits.callsInFlightMax ?? CALLS_IN_FLIGHT_MAX,
      keepalive: limits.keepalive ?? KEEPALIVE_DEFAULT,
    };
    this.ended = new Promise((resolve) => {
      this.#onEnd = resolve;
    });
    // For good: a stream may fail more than once, also after its end.
    stream.on('error', (error) =>
      this.#fail('ended', `the stream failed: ${error.message}`, error),
    );
    stream.on('end', () => this.#fail('ended', 'libvirt closed the connection'));
    stream.on('close', () => this.#fail('ended', 'the stream was closed'));
    stream.on('data', (piece: Uint8Array) => this.#onData(piece));
  }

  get isEnded(): boolean {
    return this.#end !== undefined;
  }

  get timers(): Timers {
    return this.#timers;
  }

  /** Calls a procedure. Aborted, it is abandoned: its answer is still awaited, and ignored. */
  async call<Arguments, Result>(
    procedure: Procedure<Arguments, Result>,
    given: Arguments,
    signal: AbortSignal,
  ): Promise<Result> {
    const asked = procedure.arguments.encode(given);
    const body = await this.#exchange(procedure.number, asked, signal, (answer) => answer);
    return this.#trusting(() =>
      decoding(`the answer to procedure ${procedure.number}`, () => procedure.result.decode(body)),
    );
  }

  /** Calls a procedure that opens a stream for writing. */
  async openStream<Arguments>(
    procedure: Procedure<Arguments, void>,
    given: Arguments,
    signal: AbortSignal,
  ): Promise<OutStream> {
    return this.#exchange(
      procedure.number,
      procedure.arguments.encode(given),
      signal,
      // At once, as the next message may already be about the stream.
      (_body, serial) => this.#addStream(procedure.number, serial),
      (stream) => stream.abort(),
    );
  }

  /** Starts to watch that the other side is there; only for one that answers keepalives. */
  keepAlive(): void {
    if (this.#end !== undefined) return;
    const { intervalMs, countMax } = this.#limits.keepalive;
    this.#keepalive = startKeepalive(
      this.#timers,
      { intervalMs, countMax },
      {
        ask: () => this.#sendKeepalive(KEEPALIVE.ping),
        isStuck: () => this.#stream.writableNeedDrain,
        onSilent: (silentMs) => this.#fail('silent', `libvirt said nothing for ${silentMs} ms`),
      },
    );
  }

  close(): void {
    if (this.#end !== undefined) return;
    const canSay = this.#stream.writable && !this.#stream.writableNeedDrain;
    if (canSay) {
      this.#send(TYPE.call, PROCEDURES.connectClose.number, ++this.#serial, STATUS.ok, NO_BYTES);
      this.#stream.end(() => this.#stream.destroy());
    }
    this.#finish(new LibvirtConnectionError('closed', 'the connection was closed'), !canSay);
  }

  drain(): void {
    this.#draining = true;
    this.#closeWhenIdle();
  }

  #closeWhenIdle(): void {
    const busy = this.#inFlight.size + this.#waiting.size + this.#streams.size;
    if (this.#draining && busy === 0) this.close();
  }

  /** `take` makes of an answer what the caller gets, or `abandon` when the caller is gone. */
  #exchange<T>(
    procedure: number,
    body: Uint8Array,
    signal: AbortSignal,
    take: (answer: Uint8Array, serial: number) => T,
    abandon: (taken: T) => void = () => undefined,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#end !== undefined) throw this.#end;
      if (this.#waiting.size >= CALLS_WAITING_MAX) {
        throw new Error(`${CALLS_WAITING_MAX} calls to libvirt are waiting already`);
      }
      const exchange: Exchange = {
        procedure,
        body,
        settle: (outcome, serial) => {
          signal.removeEventListener('abort', onAbort);
          if (outcome instanceof Error) reject(outcome);
          else if (signal.aborted) abandon(take(outcome, serial));
          else resolve(take(outcome, serial));
        },
      };
      const onAbort = () => {
        this.#waiting.delete(exchange);
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(exchange);
      this.#startWaiting();
    });
  }

  #startWaiting(): void {
    for (const exchange of this.#waiting) {
      if (this.#inFlight.size >= this.#limits.callsInFlightMax) return;
      this.#waiting.delete(exchange);
      const serial = ++this.#serial;
      this.#inFlight.set(serial, exchange);
      this.#send(TYPE.call, exchange.procedure, serial, STATUS.ok, exchange.body);
    }
  }

  #addStream(procedure: number, serial: number): OutStream {
    let onEnd: (error: Error | undefined) => void = () => undefined;
    const ended = new Promise<Error | undefined>((resolve) => {
      onEnd = resolve;
    });
    this.#streams.set(serial, { end: onEnd });
    const send = (status: number, chunk: Uint8Array) =>
      // One that libvirt has ended takes nothing more.
      !this.#streams.has(serial) || this.#send(TYPE.stream, procedure, serial, status, chunk);
    return {
      ended,
      write: (chunk) => send(STATUS.continue, chunk),
      drained: () => this.#drained(),
      finish: () => void send(STATUS.ok, NO_BYTES),
      abort: () => void send(STATUS.error, NO_BYTES),
    };
  }

  #drained(): Promise<void> {
    const stream = this.#stream;
    if (this.#end !== undefined || !stream.writableNeedDrain) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        stream.off('drain', done);
        stream.off('close', done);
        resolve();
      };
      stream.on('drain', done);
      stream.on('close', done);
    });
  }

  #onData(piece: Uint8Array): void {
    if (this.#end !== undefined) return;
    this.#keepalive?.heard();
    try {
      for (const message of this.#reader.push(piece)) {
        this.#onMessage(message);
        if (this.#end !== undefined) return;
      }
    } catch (error) {
      if (error instanceof LibvirtConnectionError) this.#finish(error, true);
      else this.#fail('protocol', error instanceof Error ? error.message : String(error), error);
    }
  }

  #onMessage({ header, body }: Message): void {
    const { program, version, procedure, type, serial, status } = header;
    if (program === PROGRAM.keepalive) {
      if (procedure === KEEPALIVE.ping) this.#sendKeepalive(KEEPALIVE.pong);
      return;
    }
    if (program !== PROGRAM.remote) throw unlike(`program 0x${program.toString(16)}`);
    if (version !== PROTOCOL_VERSION) throw unlike(`version ${version} of the protocol`);
    // An event; none was asked for, and none matters.
    if (type === TYPE.message) return;
    const error = status === STATUS.error ? errorOf(body) : undefined;
    if (error === undefined && status !== STATUS.ok) throw unlike(`status ${status}`);
    if (type === TYPE.stream) this.#onStreamEnd(serial, error);
    else if (type === TYPE.reply) this.#onReply(serial, error ?? body);
    else throw unlike(`a message of type ${type}`);
  }

  #onReply(serial: number, outcome: Uint8Array | Error): void {
    const exchange = this.#inFlight.get(serial);
    if (exchange === undefined) throw unlike(`an answer to call ${serial}, which was not asked`);
    this.#inFlight.delete(serial);
    exchange.settle(outcome, serial);
    this.#startWaiting();
    this.#closeWhenIdle();
  }

  /** A stream of the past may be ended twice: after an error, libvirt still confirms the finish. */
  #onStreamEnd(serial: number, error: Error | undefined): void {
    if (serial === 0 || serial > this.#serial)
      throw unlike(`the end of stream ${serial}, which was not opened`);
    const stream = this.#streams.get(serial);
    this.#streams.delete(serial);
    stream?.end(error);
    this.#closeWhenIdle();
  }

  #sendKeepalive(procedure: number): void {
    const { message: type } = TYPE;
    this.#send(type, procedure, 0, STATUS.ok, NO_BYTES, PROGRAM.keepalive);
  }

  /** False when what was written before waits to be taken. */
  #send(
    type: number,
    procedure: number,
    serial: number,
    status: number,
    body: Uint8Array,
    program: number = PROGRAM.remote,
  ): boolean {
    if (!this.#stream.writable) return true;
    const header = { program, version: PROTOCOL_VERSION, procedure, type, serial, status };
    return this.#stream.write(Buffer.concat([encodeHead(header, body.length), body]));
  }

  /** Runs what reads an answer; one that is unreadable ends the connection. */
  #trusting<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof LibvirtConnectionError) this.#finish(error, true);
      throw error;
    }
  }

  #fail(kind: ConnectionEnd, message: string, cause?: unknown): void {
    this.#finish(new LibvirtConnectionError(kind, message, { cause }), true);
  }

  #finish(reason: LibvirtConnectionError, destroy: boolean): void {
    if (this.#end !== undefined) return;
    this.#end = reason;
    this.#keepalive?.stop();
    for (const exchange of [...this.#inFlight.values(), ...this.#waiting]) {
      exchange.settle(reason, 0);
    }
    for (const stream of this.#streams.values()) stream.end(reason);
    this.#inFlight.clear();
    this.#waiting.clear();
    this.#streams.clear();
    this.#onEnd(reason);
    if (destroy) this.#stream.destroy();
  }
}

function unlike(what: string): LibvirtConnectionError {
  return new LibvirtConnectionError('protocol', `this is not libvirt: ${what}`);
}

function errorOf(body: Uint8Array): LibvirtError {
  return new LibvirtError(decoding('an error', () => remoteError.decode(body)));
}
