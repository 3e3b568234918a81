/** Streams over one connection: each ends alone, the connection when it is dead or retired. */
import { beforeEach, expect, it } from 'vitest';
import type { SshLink } from '#agent/providers/kvm/ssh/link.ts';
import { FakeClock, settle } from '#test/fakes/clock.ts';
import { FakeClient } from './fake-client.ts';

let clock: FakeClock;
let client: FakeClient;
let link: SshLink;
const never = new AbortController().signal;

beforeEach(() => {
  clock = new FakeClock();
  client = new FakeClient();
  link = client.asLink('me@hv1', clock);
});

const open = (signal = never) => link.openSocket('/run/sock', 10_000, signal);

it('opens a stream to the socket that is asked for', async () => {
  const opening = open();
  expect(client.openings[0]?.path).toBe('/run/sock');
  const stream = client.open();
  await expect(opening).resolves.toBe(stream);
  expect(clock.pendingTimers).toBe(0);
});

it('says what may be the reason when the socket cannot be opened', async () => {
  const opening = open();
  client.refuse();
  await expect(opening).rejects.toMatchObject({
    kind: 'socket',
    permanent: false,
    message: expect.stringContaining('is libvirtd running'),
  });
  expect(link.isEnded).toBe(false);
});

it('gives up on an opening after its deadline; one that opens late is closed', async () => {
  const opening = open();
  const outcome = expect(opening).rejects.toMatchObject({ kind: 'unreachable' });
  await clock.advance(10_000);
  await outcome;
  expect(client.open().destroyed).toBe(true);
  expect(link.isEnded).toBe(false);
});

it('an abort ends one opening and no other', async () => {
  const controller = new AbortController();
  const [aborted, other] = [open(controller.signal), open()];
  controller.abort(new Error('enough'));
  await expect(aborted).rejects.toThrow('enough');
  expect(client.open().destroyed).toBe(true);
  const stream = client.open();
  await expect(other).resolves.toBe(stream);
  expect(stream.destroyed).toBe(false);
});

it('a lost connection fails what is being opened and what comes after, with the reason', async () => {
  const opening = open();
  client.emit('error', new Error('Keepalive timeout'));
  client.destroy();
  const lost = { kind: 'lost', message: 'the connection to me@hv1 was lost: Keepalive timeout' };
  await expect(opening).rejects.toMatchObject(lost);
  await expect(open()).rejects.toMatchObject(lost);
  await expect(link.ended).resolves.toMatchObject(lost);
  expect(clock.pendingTimers).toBe(0);
});

it('a client that lost its connection a moment ago is no bug', async () => {
  client.closed = true;
  await expect(open()).rejects.toMatchObject({ kind: 'lost' });
});

it('errors after the end are swallowed', () => {
  client.destroy();
  expect(() => client.emit('error', new Error('again'))).not.toThrow();
});

it('retired, it stays until its last stream has ended', async () => {
  const opening = open();
  const stream = client.open();
  await opening;
  link.retire();
  expect(client.closed).toBe(false);
  stream.destroy();
  await new Promise((resolve) => setImmediate(resolve));
  expect(client.closed).toBe(true);
  await settle();
  await expect(link.ended).resolves.toMatchObject({ name: 'SshError' });
});

it('retired without streams, it ends at once', () => {
  link.retire();
  expect(client.closed).toBe(true);
});
