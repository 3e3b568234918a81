/** Uploads to a scripted server: back-pressure, lengths, aborts, refusals, stalls. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Connection } from '#agent/providers/kvm/libvirt/connection.ts';
import { PROCEDURES } from '#agent/providers/kvm/libvirt/procedures.ts';
import { type Bytes, type UploadOptions, upload } from '#agent/providers/kvm/libvirt/upload.ts';
import {
  type Message,
  STATUS,
  STREAM_CHUNK_BYTES_MAX,
  TYPE,
} from '#agent/providers/kvm/libvirt/wire.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { ANSWER, createScriptedServer, delivered, type ScriptedServer } from './scripted-server.ts';

const VOLUME = { pool: 'images', name: 'a', key: '/images/a' };
let clock: FakeClock;
let server: ScriptedServer;
let connection: Connection;
const never = new AbortController().signal;

beforeEach(() => {
  clock = new FakeClock();
  server = createScriptedServer();
  connection = new Connection(server.stream, clock);
});

const start = (source: Bytes, options: UploadOptions = {}, signal: AbortSignal = never) =>
  upload(connection, VOLUME, source, options, signal);

/** Lets the upload begin, and gives the call that it is. */
async function opened(): Promise<Message> {
  const call = await server.next();
  server.reply(call);
  await delivered();
  return call;
}

const statuses = () =>
  server.heard
    .filter(({ header }) => header.type === TYPE.stream)
    .map(({ header }) => header.status);
const data = () =>
  Buffer.concat(
    server.heard
      .filter(({ header: { type, status } }) => type === TYPE.stream && status === STATUS.continue)
      .map(({ body }) => body),
  );

/** A source that tells how far it was read, and whether it was let go. */
function counted(chunks: number, bytes: number) {
  const seen = { pulled: 0, returned: false };
  const source: Bytes = {
    [Symbol.asyncIterator]: () => ({
      async next() {
        if (seen.pulled >= chunks) return { done: true, value: undefined };
        seen.pulled++;
        return { done: false, value: new Uint8Array(bytes) };
      },
      async return() {
        seen.returned = true;
        return { done: true, value: undefined };
      },
    }),
  };
  return { seen, source };
}

describe('an upload', () => {
  it('says where and how much, sends all bytes under its serial, and waits for the verdict', async () => {
    const done = start([Buffer.from('ab'), Buffer.from('cde')], { length: 5, offset: 512 });
    const call = await opened();
    const { arguments: type } = PROCEDURES.volumeUpload;
    expect(type.decode(call.body)).toEqual({ volume: VOLUME, offset: 512, length: 5, flags: 0 });
    expect(data().toString()).toBe('abcde');
    expect(statuses()).toEqual([STATUS.continue, STATUS.continue, STATUS.ok]);
    expect(new Set(server.heard.map(({ header }) => header.serial))).toEqual(
      new Set([call.header.serial]),
    );
    server.endStream(call);
    await expect(done).resolves.toBe(5);
  });

  it('cuts what is too long for one message', async () => {
    const bytes = Buffer.alloc(STREAM_CHUNK_BYTES_MAX * 2 + 1, 'x');
    server = createScriptedServer(10_000_000);
    connection = new Connection(server.stream, clock);
    const done = start([bytes], { length: bytes.length });
    const call = await opened();
    const lengths = server.heard.slice(1).map(({ body }) => body.length);
    expect(lengths).toEqual([STREAM_CHUNK_BYTES_MAX, STREAM_CHUNK_BYTES_MAX, 1, 0]);
    server.endStream(call);
    await expect(done).resolves.toBe(bytes.length);
  });

  it('reads its source no faster than libvirt takes it', async () => {
    const { seen, source } = counted(100, 30_000);
    const done = start(source);
    const call = await server.next();
    server.block();
    server.reply(call);
    await delivered();
    expect(seen.pulled).toBeLessThan(5);
    server.take();
    await expect.poll(() => seen.pulled).toBe(100);
    server.endStream(call);
    await expect(done).resolves.toBe(3_000_000);
  });

  it('lets other calls through meanwhile', async () => {
    const { source } = counted(1, 10);
    const done = start(source);
    const call = await opened();
    const asked = connection.call(PROCEDURES.connectGetHostname, undefined, never);
    const other = server.heard.at(-1) as Message;
    server.reply(other, ANSWER.hostname('a'));
    await expect(asked).resolves.toEqual({ hostname: 'a' });
    server.endStream(call);
    await done;
  });
});

describe('a source', () => {
  it.each([
    ['fewer', 9, 'short', 'the source ended after 8 of 9 bytes'],
    ['more', 7, 'long', 'the source has more than the 7 bytes it should have'],
  ])('with %s bytes than it should have is given up, on the wire too', async (...row) => {
    const [, length, kind, message] = row;
    const { seen, source } = counted(2, 4);
    const done = start(source, { length });
    const outcome = expect(done).rejects.toMatchObject({ kind, message });
    await opened();
    await outcome;
    expect(statuses().at(-1)).toBe(STATUS.error);
    expect(seen.returned).toBe(true);
  });

  it('that fails ends the upload with its error', async () => {
    async function* failing() {
      yield Buffer.from('a');
      throw new Error('cut off');
    }
    const done = start(failing());
    const outcome = expect(done).rejects.toThrow('cut off');
    await opened();
    await outcome;
    expect(statuses()).toEqual([STATUS.continue, STATUS.error]);
  });

  it('that hangs does not outlive an abort', async () => {
    const controller = new AbortController();
    const hanging: Bytes = {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }),
    };
    const done = start(hanging, {}, controller.signal);
    const outcome = expect(done).rejects.toThrow('enough');
    await opened();
    controller.abort(new Error('enough'));
    await outcome;
    expect(statuses()).toEqual([STATUS.error]);
  });
});

describe('an aborted upload', () => {
  it('ends while libvirt takes nothing; its confirmation and other calls are unharmed', async () => {
    const controller = new AbortController();
    const { seen, source } = counted(100, 50_000);
    const done = start(source, {}, controller.signal);
    const outcome = expect(done).rejects.toThrow('enough');
    const call = await server.next();
    server.block();
    server.reply(call);
    await delivered();
    controller.abort(new Error('enough'));
    await outcome;
    expect(seen.returned).toBe(true);
    server.take();
    await delivered();
    expect(statuses().at(-1)).toBe(STATUS.error);
    server.endStream(call);
    const asked = connection.call(PROCEDURES.connectGetHostname, undefined, never);
    server.reply(server.heard.at(-1) as Message, ANSWER.hostname('a'));
    await expect(asked).resolves.toEqual({ hostname: 'a' });
  });

  it('before libvirt opened it: the stream is aborted as soon as it is open', async () => {
    const controller = new AbortController();
    const done = start([Buffer.from('a')], {}, controller.signal);
    const call = await server.next();
    controller.abort(new Error('enough'));
    await expect(done).rejects.toThrow('enough');
    expect(statuses()).toEqual([]);
    server.reply(call);
    await delivered();
    expect(statuses()).toEqual([STATUS.error]);
    server.endStream(call);
    await delivered();
    expect(connection.isEnded).toBe(false);
  });

  it('while its end is awaited', async () => {
    const controller = new AbortController();
    const done = start([Buffer.from('a')], {}, controller.signal);
    const outcome = expect(done).rejects.toThrow('enough');
    await opened();
    expect(statuses()).toEqual([STATUS.continue, STATUS.ok]);
    controller.abort(new Error('enough'));
    await outcome;
  });
});

describe('libvirt', () => {
  it('may refuse the upload', async () => {
    const done = start([Buffer.from('a')]);
    server.refuse(await server.next(), 50, 'no such volume');
    await expect(done).rejects.toMatchObject({ code: 50 });
    expect(statuses()).toEqual([]);
  });

  it('may end it with an error, and confirm it once more afterwards', async () => {
    const { seen, source } = counted(1000, 30_000);
    const done = start(source);
    const outcome = expect(done).rejects.toMatchObject({ name: 'LibvirtError', code: 38 });
    const call = await server.next();
    server.block();
    server.reply(call);
    await delivered();
    server.endStream(call, { code: 38, message: 'No space left on device' });
    await outcome;
    expect(seen.returned).toBe(true);
    server.take();
    server.endStream(call);
    await delivered();
    expect(connection.isEnded).toBe(false);
  });

  it('may end it with an error in the same breath as it opens it', async () => {
    const done = start([Buffer.from('a')]);
    const outcome = expect(done).rejects.toMatchObject({ code: 38 });
    const call = await server.next();
    server.reply(call);
    server.endStream(call, { code: 38, message: 'disk full' });
    await outcome;
  });

  it.each([
    ['takes nothing', true],
    ['does not confirm the end', false],
  ])('that %s for five minutes has stalled', async (_what, blocks) => {
    const done = start(blocks ? counted(9, 50_000).source : [Buffer.from('a')]);
    const outcome = expect(done).rejects.toMatchObject({ kind: 'stalled' });
    const call = await server.next();
    if (blocks) server.block();
    server.reply(call);
    await delivered();
    await clock.advance(300_000);
    await outcome;
    expect(clock.pendingTimers).toBe(0);
  });

  it('may vanish in the middle', async () => {
    const { seen, source } = counted(100, 50_000);
    const done = start(source);
    const outcome = expect(done).rejects.toMatchObject({ name: 'LibvirtConnectionError' });
    const call = await server.next();
    server.block();
    server.reply(call);
    await delivered();
    server.end();
    await outcome;
    expect(seen.returned).toBe(true);
  });
});
