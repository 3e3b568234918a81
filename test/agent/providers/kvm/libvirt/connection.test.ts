/** Calls on a connection whose other side is scripted. */
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { Connection } from '#agent/providers/kvm/libvirt/connection.ts';
import { PROCEDURES } from '#agent/providers/kvm/libvirt/procedures.ts';
import { KEEPALIVE, PROGRAM, STATUS, TYPE } from '#agent/providers/kvm/libvirt/wire.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { ANSWER, createScriptedServer, delivered, type ScriptedServer } from './scripted-server.ts';

let clock: FakeClock;
let server: ScriptedServer;
let connection: Connection;
const never = new AbortController().signal;

beforeEach(() => {
  clock = new FakeClock();
  server = createScriptedServer();
  connection = new Connection(server.stream, clock, { callsInFlightMax: 3 });
});

const hostname = (signal: AbortSignal = never) =>
  connection.call(PROCEDURES.connectGetHostname, undefined, signal);
const lookup = (name: string, signal: AbortSignal = never) =>
  connection.call(PROCEDURES.domainLookupByName, { name }, signal);

describe('calls', () => {
  it('get their own answers, in whatever order these come', async () => {
    const asked = [hostname(), hostname(), hostname()];
    const calls = [await server.next(), await server.next(), await server.next()];
    for (const [index, call] of [...calls.entries()].reverse()) {
      server.reply(call, ANSWER.hostname(`host-${index}`));
    }
    await expect(Promise.all(asked)).resolves.toEqual([
      { hostname: 'host-0' },
      { hostname: 'host-1' },
      { hostname: 'host-2' },
    ]);
  });

  it("fail with libvirt's code, domain and level", async () => {
    const asked = lookup('vm');
    server.refuse(await server.next(), 42, "no domain with matching name 'vm'");
    await expect(asked).rejects.toMatchObject({
      name: 'LibvirtError',
      code: 42,
      domain: 10,
      level: 2,
      message: "no domain with matching name 'vm'",
    });
  });

  it('wait while as many as libvirt takes are in flight', async () => {
    const asked = Array.from({ length: 5 }, () => hostname());
    expect(server.heard).toHaveLength(3);
    server.reply(await server.next(), ANSWER.hostname('a'));
    await asked[0];
    expect(server.heard).toHaveLength(4);
  });

  it('that are refused before they are sent harm nothing', async () => {
    const bad = connection.call(PROCEDURES.domainLookupByUuid, { uuid: 'x' }, never);
    await expect(bad).rejects.toThrow('"x" is no UUID');
    expect(server.heard).toHaveLength(0);
    const asked = hostname();
    server.reply(await server.next(), ANSWER.hostname('a'));
    await expect(asked).resolves.toEqual({ hostname: 'a' });
  });
});

describe('an aborted call', () => {
  it('ends at once, and its late answer disturbs no other', async () => {
    const controller = new AbortController();
    const abandoned = hostname(controller.signal);
    const other = hostname();
    const [first, second] = [await server.next(), await server.next()];
    controller.abort(new Error('enough'));
    await expect(abandoned).rejects.toThrow('enough');
    server.reply(first, ANSWER.hostname('late'));
    server.reply(second, ANSWER.hostname('here'));
    await expect(other).resolves.toEqual({ hostname: 'here' });
    expect(connection.isEnded).toBe(false);
  });

  it('that was not sent yet never is', async () => {
    const controller = new AbortController();
    const running = [hostname(), hostname(), hostname()];
    const waiting = lookup('never', controller.signal);
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    for (const asked of running) {
      server.reply(await server.next(), ANSWER.hostname('a'));
      await asked;
    }
    await delivered();
    expect(server.heard).toHaveLength(3);
  });

  it('keeps its place until libvirt is done with it', async () => {
    const controller = new AbortController();
    const abandoned = [1, 2, 3].map(() => hostname(controller.signal));
    controller.abort(new Error('enough'));
    await Promise.allSettled(abandoned);
    const next = hostname();
    expect(server.heard).toHaveLength(3);
    server.refuse(await server.next(), 42);
    await delivered();
    expect(server.heard).toHaveLength(4);
    void next.catch(() => undefined);
  });

  it('was aborted before: nothing is sent', async () => {
    await expect(hostname(AbortSignal.abort(new Error('before')))).rejects.toThrow('before');
    expect(server.heard).toHaveLength(0);
  });

  it('leaves no listener on its signal', async () => {
    const { signal } = new AbortController();
    const listeners: string[] = [];
    signal.addEventListener = () => void listeners.push('on');
    signal.removeEventListener = () => void listeners.push('off');
    const asked = hostname(signal);
    server.reply(await server.next(), ANSWER.hostname('a'));
    await asked;
    expect(listeners).toEqual(['on', 'off']);
  });
});

describe('when the connection ends', () => {
  it.each([
    ['the other side ends it', () => server.end(), 'ended', 'libvirt closed the connection'],
    [
      'the stream fails',
      () => server.stream.destroy(new Error('reset')),
      'ended',
      'the stream failed: reset',
    ],
    ['the stream is closed', () => server.stream.destroy(), 'ended', 'the stream was closed'],
    ['this side closes it', () => connection.close(), 'closed', 'the connection was closed'],
  ])('because %s, every call fails, the waiting and the next ones too', async (...row) => {
    const [, end, kind, message] = row;
    const asked = Array.from({ length: 5 }, () => hostname());
    await server.next();
    end();
    for (const call of asked) {
      await expect(call).rejects.toMatchObject({ name: 'LibvirtConnectionError', kind, message });
    }
    await expect(hostname()).rejects.toMatchObject({ kind });
    expect(connection.isEnded).toBe(true);
    await expect(connection.ended).resolves.toMatchObject({ kind, message });
    expect(clock.pendingTimers).toBe(0);
  });

  it('says goodbye when it closes itself', async () => {
    connection.close();
    expect((await server.next()).header.procedure).toBe(PROCEDURES.connectClose.number);
    await delivered();
    expect(server.stream.writableEnded).toBe(true);
  });

  it('drained, it ends with its last call', async () => {
    const asked = hostname();
    connection.drain();
    expect(connection.isEnded).toBe(false);
    server.reply(await server.next(), ANSWER.hostname('a'));
    await expect(asked).resolves.toEqual({ hostname: 'a' });
    expect(connection.isEnded).toBe(true);
  });

  it('drained while nothing is in flight, it ends at once', () => {
    connection.drain();
    expect(connection.isEnded).toBe(true);
  });
});

describe('what is not the protocol ends the connection with a reason', () => {
  const reply = { serial: 1, procedure: 59, type: TYPE.reply };
  it.each([
    ['another program', () => server.send({ ...reply, program: 1 }), 'program 0x1'],
    ['another version', () => server.send({ ...reply, version: 2 }), 'version 2'],
    ['an answer that nobody asked for', () => server.send({ ...reply, serial: 9 }), 'call 9'],
    [
      'a stream that nobody opened',
      () => server.send({ serial: 9, type: TYPE.stream }),
      'stream 9',
    ],
    ['a call', () => server.send({ ...reply, type: TYPE.call }), 'type 0'],
    ['an unknown type', () => server.send({ ...reply, type: 17 }), 'type 17'],
    ['an unknown status', () => server.send({ ...reply, status: 5 }), 'status 5'],
    [
      'an unreadable error',
      () => server.send({ ...reply, status: STATUS.error }, Buffer.from('abc')),
      'an error cannot be read',
    ],
    [
      'an unreadable answer',
      () => server.send(reply, Buffer.from('ffffffff', 'hex')),
      'the answer to procedure 59 cannot be read',
    ],
    ['a length that cannot be', () => server.raw(Buffer.from('SSH-')), 'a message of 139'],
    ['a message of nothing', () => server.raw(Buffer.alloc(4)), 'a message of 0 bytes'],
  ])('%s', async (_name, send, words) => {
    const asked = hostname();
    await server.next();
    send();
    await expect(asked).rejects.toMatchObject({
      name: 'LibvirtConnectionError',
      kind: 'protocol',
      message: expect.stringContaining(words),
    });
    expect(connection.isEnded).toBe(true);
    expect(server.stream.destroyed).toBe(true);
  });

  it('any bytes: the call fails or waits, and nothing is thrown into an event', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 60 })), async (pieces) => {
        const garbled = createScriptedServer();
        const other = new Connection(garbled.stream, clock);
        const asked = other.call(PROCEDURES.connectGetHostname, undefined, never);
        const outcome = asked.then(
          () => 'answered',
          (error: unknown) => (error instanceof Error ? error.name : 'not an error'),
        );
        for (const piece of pieces) if (!garbled.stream.destroyed) garbled.raw(piece);
        await delivered();
        other.close();
        expect(await outcome).toBe('LibvirtConnectionError');
      }),
    );
  });

  it('events that nobody asked for are no fault', async () => {
    const asked = hostname();
    const call = await server.next();
    server.send({ type: TYPE.message, procedure: 107 }, Buffer.alloc(12));
    server.reply(call, ANSWER.hostname('a'));
    await expect(asked).resolves.toEqual({ hostname: 'a' });
  });
});

describe('keepalive', () => {
  const keepalives = () =>
    server.heard
      .filter(({ header }) => header.program === PROGRAM.keepalive)
      .map(({ header }) => header.procedure);

  it('answers pings', async () => {
    server.send({ program: PROGRAM.keepalive, procedure: KEEPALIVE.ping, type: TYPE.message });
    expect((await server.next()).header).toEqual({
      program: PROGRAM.keepalive,
      version: 1,
      procedure: KEEPALIVE.pong,
      type: TYPE.message,
      serial: 0,
      status: 0,
    });
  });

  it('asks after 10 s of silence, and takes the other side for dead after three', async () => {
    connection.keepAlive();
    const asked = hostname();
    const outcome = expect(asked).rejects.toMatchObject({ kind: 'silent' });
    await clock.advance(9_999);
    expect(keepalives()).toEqual([]);
    await clock.advance(20_001);
    expect(keepalives()).toEqual([1, 1, 1]);
    expect(connection.isEnded).toBe(false);
    await clock.advance(10_000);
    expect(connection.isEnded).toBe(true);
    await outcome;
    expect(clock.pendingTimers).toBe(0);
  });

  it('believes whatever it hears', async () => {
    connection.keepAlive();
    for (let minute = 0; minute < 10; minute++) {
      await clock.advance(30_000);
      server.send({ program: PROGRAM.keepalive, procedure: KEEPALIVE.pong, type: TYPE.message });
      await delivered();
    }
    expect(connection.isEnded).toBe(false);
  });

  it('takes nobody for dead who takes nothing for now', async () => {
    connection.keepAlive();
    const big = { xml: 'x'.repeat(200_000), flags: 0 };
    server.block();
    const asked = connection.call(PROCEDURES.domainDefineXmlFlags, big, never);
    asked.catch(() => undefined);
    await clock.advance(300_000);
    expect(connection.isEnded).toBe(false);
    server.take();
    await clock.advance(50_000);
    expect(connection.isEnded).toBe(true);
  });

  it('is not started for one that does not answer it', async () => {
    await clock.advance(600_000);
    expect(keepalives()).toEqual([]);
    expect(connection.isEnded).toBe(false);
  });
});
