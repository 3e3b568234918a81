/** A virtual proxy from its object to its end, with Debian and all of cloud-init that matters. */
import { describe } from 'vitest';
import { cannotRunHypervisor } from '#test/hypervisor/machine.ts';
import { cannotRun as cannotRunAgents } from '#test/integration/agent-world.ts';
import { cannotBuildGuest, guestImage } from './image.ts';
import { describeLifecycle } from './lifecycle.ts';
import { squidCloudConfig } from './user-data.ts';

const cannotRun = cannotRunHypervisor() ?? cannotBuildGuest() ?? cannotRunAgents;

describe.skipIf(cannotRun !== undefined)(
  `a virtual proxy on Debian${cannotRun === undefined ? '' : ` (${cannotRun})`}`,
  () => {
    describeLifecycle({
      image: () => guestImage('debian'),
      userData: squidCloudConfig,
      memoryMiB: 512,
      diskGiB: 2,
      // About 40 s where nothing else runs.
      readyMsMax: 240_000,
    });
  },
);
