/** The other side of a connection, which says what a test tells it to, byte by byte if need be. */
import { Duplex } from 'node:stream';
import { PROCEDURES, remoteError } from '#agent/providers/kvm/libvirt/procedures.ts';
import {
  encodeHead,
  type Header,
  type Message,
  MessageReader,
  PROGRAM,
  STATUS,
  TYPE,
} from '#agent/providers/kvm/libvirt/wire.ts';

export interface ScriptedServer {
  /** The client's end. */
  readonly stream: Duplex;
  /** Everything that the client has said, in order. */
  readonly heard: readonly Message[];
  /** Resolves with the next message that was not taken yet. */
  next(): Promise<Message>;
  /** Sends bytes as they are. */
  raw(bytes: Uint8Array): void;
  send(header: Partial<Header>, body?: Uint8Array): void;
  /** Answers a call. */
  reply(to: Message, body?: Uint8Array): void;
  refuse(to: Message, code: number, message?: string): void;
  /** Ends a stream that the client writes. */
  endStream(to: Message, error?: { code: number; message: string }): void;
  /** Takes nothing more until `take`. */
  block(): void;
  take(): void;
  end(): void;
}

const TURNS = 4;

/** Lets streams deliver what was written: their events come with turns of the loop. */
export async function delivered(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
}

const NO_BYTES = new Uint8Array(0);

export function createScriptedServer(highWaterMark = 64 * 1024): ScriptedServer {
  const heard: Message[] = [];
  const waiting: ((message: Message) => void)[] = [];
  const reader = new MessageReader();
  let taken = 0;
  let blocked = false;
  const held: (() => void)[] = [];
  const stream = new Duplex({
    highWaterMark,
    read() {},
    write(chunk: Buffer, _encoding, done) {
      const take = () => {
        for (const message of reader.push(chunk)) {
          heard.push(message);
          if (waiting.length > 0) taken++;
          waiting.shift()?.(message);
        }
        done();
      };
      if (blocked) held.push(take);
      else take();
    },
  });
  const send = (given: Partial<Header>, body: Uint8Array = NO_BYTES) => {
    const header = { program: PROGRAM.remote, version: 1, procedure: 1, ...given };
    const rest = { type: TYPE.reply, serial: 0, status: STATUS.ok, ...header };
    stream.push(Buffer.concat([encodeHead(rest, body.length), body]));
  };
  return {
    stream,
    heard,
    next() {
      const message = heard[taken];
      if (message === undefined) return new Promise((resolve) => waiting.push(resolve));
      taken++;
      return Promise.resolve(message);
    },
    raw: (bytes) => void stream.push(bytes),
    send,
    reply: ({ header: { procedure, serial } }, body) => send({ procedure, serial }, body),
    refuse({ header: { procedure, serial } }, code, message = 'no') {
      send({ procedure, serial, status: STATUS.error }, errorBody(code, message));
    },
    endStream({ header: { procedure, serial } }, error) {
      const status = error === undefined ? STATUS.ok : STATUS.error;
      const body = error === undefined ? NO_BYTES : errorBody(error.code, error.message);
      send({ procedure, serial, status, type: TYPE.stream }, body);
    },
    block() {
      blocked = true;
    },
    take() {
      blocked = false;
      for (const take of held.splice(0)) take();
    },
    end: () => void stream.push(null),
  };
}

export function errorBody(code: number, message: string): Uint8Array {
  const rest = { dom: null, str1: null, str2: null, str3: null, int1: 0, int2: 0, net: null };
  return remoteError.encode({ code, domain: 10, message, level: 2, ...rest });
}

/** Bodies of answers that tests need often. */
export const ANSWER = {
  hostname: (hostname: string) => PROCEDURES.connectGetHostname.result.encode({ hostname }),
  version: (version: number) => PROCEDURES.connectGetLibVersion.result.encode({ version }),
  authTypes: (...types: number[]) => PROCEDURES.authList.result.encode({ types }),
  supported: (supported: number) => PROCEDURES.connectSupportsFeature.result.encode({ supported }),
} as const;
