/** `npm run test:kvm`: everything that has a real libvirtd in it, and the guest that takes minutes. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: '.',
    reporters: ['verbose', './test/reporter.ts'],
    include: [
      'test/guests/*.guest.ts',
      'test/integration/{hypervisor,kvm,kvm-faults}.test.ts',
      'test/conformance/kvm.test.ts',
    ],
    // Guests are emulated: two at a time would only be slower, and miss their deadlines.
    fileParallelism: false,
    testTimeout: 30_000,
  },
});
