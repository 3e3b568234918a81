/** How a session begins, and what is asked in more than one call. */
import { beforeEach, describe, expect, it } from 'vitest';
import { type LibvirtClient, openLibvirt } from '#agent/providers/kvm/libvirt/client.ts';
import { PROCEDURES } from '#agent/providers/kvm/libvirt/procedures.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { ANSWER, createScriptedServer, type ScriptedServer } from './scripted-server.ts';

const never = new AbortController().signal;
let clock: FakeClock;
let server: ScriptedServer;

beforeEach(() => {
  clock = new FakeClock();
  server = createScriptedServer();
});

const open = (signal = never) => openLibvirt(server.stream, { timers: clock }, signal);

async function opened(supported = 1): Promise<LibvirtClient> {
  const opening = open();
  server.reply(await server.next(), ANSWER.authTypes(0));
  server.reply(await server.next());
  server.reply(await server.next(), ANSWER.version(9_000_003));
  server.reply(await server.next(), ANSWER.supported(supported));
  return await opening;
}

describe('a session', () => {
  it('asks how to get in before anything else, then opens the driver', async () => {
    const client = await opened();
    expect(client.version).toBe('9.0.3');
    expect(server.heard.map(({ header }) => header.procedure)).toEqual([66, 1, 157, 60]);
    const { arguments: type } = PROCEDURES.connectOpen;
    expect(type.decode(server.heard[1]?.body ?? new Uint8Array())).toEqual({
      uri: 'qemu:///system',
      flags: 0,
    });
  });

  it('watches for silence where libvirt answers keepalives, and there alone', async () => {
    await opened(1);
    expect(clock.pendingTimers).toBe(1);
    server = createScriptedServer();
    clock = new FakeClock();
    await opened(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it('does without keepalives when libvirt does not know the question', async () => {
    const opening = open();
    server.reply(await server.next(), ANSWER.authTypes(0));
    server.reply(await server.next());
    server.reply(await server.next(), ANSWER.version(9_000_003));
    server.refuse(await server.next(), 3, 'this function is not supported');
    await expect(opening).resolves.toMatchObject({ version: '9.0.3' });
  });

  it.each([
    ['polkit', 2],
    ['SASL', 1],
  ])('that asks for %s is refused, with what to change', async (how, type) => {
    const opening = open();
    server.reply(await server.next(), ANSWER.authTypes(type));
    await expect(opening).rejects.toMatchObject({
      name: 'LibvirtRefusedError',
      kind: 'auth',
      message: expect.stringMatching(`${how} .*auth_unix_rw = "none"`),
    });
  });

  it('with a libvirt that is too old is refused', async () => {
    const opening = open();
    server.reply(await server.next(), ANSWER.authTypes());
    server.reply(await server.next());
    server.reply(await server.next(), ANSWER.version(1_002_002));
    await expect(opening).rejects.toMatchObject({
      kind: 'version',
      message: 'libvirt 1.2.2 is too old; it must be at least 1.2.14',
    });
  });

  it('whose driver does not open fails with its error and ends the stream', async () => {
    const opening = open();
    server.reply(await server.next(), ANSWER.authTypes(0));
    server.refuse(await server.next(), 38, 'no such driver');
    await expect(opening).rejects.toMatchObject({ code: 38 });
    expect(server.stream.writableEnded).toBe(true);
  });

  it('that is given up while it opens ends the stream', async () => {
    const controller = new AbortController();
    const opening = open(controller.signal);
    await server.next();
    controller.abort(new Error('enough'));
    await expect(opening).rejects.toThrow('enough');
    expect(server.stream.writableEnded).toBe(true);
  });
});

it('the memory of a host is asked for in as many fields as there are', async () => {
  const client = await opened();
  const asked = client.hostMemory(never);
  const { arguments: question, result } = PROCEDURES.nodeGetMemoryStats;
  server.reply(await server.next(), result.encode({ stats: [], count: 4 }));
  const second = await server.next();
  expect(question.decode(second.body)).toEqual({ count: 4, cell: -1, flags: 0 });
  const stats = Object.entries({ total: 8, free: 4, buffers: 2, cached: 1 });
  const listed = stats.map(([field, kib]) => ({ field, kib }));
  server.reply(second, result.encode({ stats: listed, count: 4 }));
  await expect(asked).resolves.toEqual({ total: 8192, free: 4096, available: 7168 });
});
