/** A virtual proxy from its object to its end, with the small guest; the real agent and libvirtd. */
import { describe } from 'vitest';
import { cannotBuildGuest, guestImage } from '#test/guests/image.ts';
import { describeLifecycle } from '#test/guests/lifecycle.ts';
import { squidScript } from '#test/guests/user-data.ts';
import { cannotRunHypervisor } from '#test/hypervisor/machine.ts';
import { cannotRun as cannotRunAgents } from './agent-world.ts';

const cannotRun = cannotRunHypervisor() ?? cannotBuildGuest() ?? cannotRunAgents;

describe.skipIf(cannotRun !== undefined)(
  `a virtual proxy${cannotRun === undefined ? '' : ` (${cannotRun})`}`,
  () => {
    describeLifecycle({
      image: () => guestImage('mini'),
      userData: squidScript,
      memoryMiB: 256,
      diskGiB: 1,
      // About 15 s where nothing else runs.
      readyMsMax: 120_000,
    });
  },
);
