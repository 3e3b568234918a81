import { expect, test } from 'vitest';
import { assertRoom, CapacityError } from '#agent/providers/kvm/capacity.ts';

const GIB = 1024 ** 3;
const type = { name: 'small', memoryMiB: 1024, diskGiB: 10 };
const pool = (available: number) => ({
  name: 'default',
  info: { state: 2, capacity: 100 * GIB, allocation: 0, available },
});
const memory = (available: number) => ({ total: 64 * GIB, free: available, available });

test('a host with just enough of both has room', () => {
  const needed = GIB + 128 * 1024 ** 2;
  expect(() => assertRoom('hv1', pool(10 * GIB), memory(needed), type)).not.toThrow();
});

test.each([
  [
    pool(10 * GIB - 1),
    memory(64 * GIB),
    'pool default of host hv1 has 10.0 GiB of 100.0 GiB free; machine type small needs 10.0 GiB',
  ],
  [
    pool(100 * GIB),
    memory(GIB),
    'host hv1 has 1024 MiB of 65536 MiB memory available; machine type small needs 1024 MiB, and 128 MiB for QEMU',
  ],
])('a host with too little says how much it has', (from, of, message) => {
  expect(() => assertRoom('hv1', from, of, type)).toThrow(new CapacityError(message));
});
