import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { createAddressPool, hostPart } from '#deploy/local/node/addresses.ts';

it.each([
  ['127.42.0.0', undefined],
  ['127.42.0.1', undefined],
  ['127.42.0.2', 2],
  ['127.42.1.4', 260],
  ['127.42.1.0', undefined],
  ['127.42.3.255', undefined],
  ['127.42.255.254', 65_534],
  ['127.42.256.1', undefined],
  ['127.43.0.2', undefined],
  ['', undefined],
])('takes %s for the host part %s', (ip, host) => {
  expect(hostPart(ip)).toBe(host);
});

it('never gives two pools of one machine the same address', async () => {
  const [mine, other] = [createAddressPool(), createAddressPool()];
  const given = await Promise.all([
    mine.acquire([]),
    other.acquire([]),
    mine.acquire([]),
    other.acquire([]),
  ]);
  expect(new Set(given.map(({ ip }) => ip)).size).toBe(4);
  for (const { ip } of given) expect(hostPart(ip)).toBeDefined();
  for (const address of given) address.release();
});

it('gives a pod its old address back, and newcomers newer ones', async () => {
  const pool = createAddressPool();
  const wanted = '127.42.200.77';
  const old = await pool.acquire([], wanted);
  expect(old.ip).toBe(wanted);
  const fresh = await pool.acquire([]);
  expect(hostPart(fresh.ip)).toBeGreaterThan(hostPart(wanted) ?? 0);
  const denied = await pool.acquire([], wanted);
  expect(denied.ip).not.toBe(wanted);
  for (const address of [old, fresh, denied]) address.release();
});

it('passes over an address where something listens on the port', async () => {
  const server = createServer();
  const ip = '127.42.201.5';
  await new Promise<void>((resolve) => server.listen(0, ip, resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const given = await createAddressPool().acquire([port], ip);
  expect(given.ip).not.toBe(ip);
  given.release();
  await new Promise((resolve) => server.close(resolve));
});

it('says at once what is wrong with a port, rather than try it at every address', async () => {
  await expect(createAddressPool().acquire([70_000])).rejects.toThrow('70000');
});
