/** What the provider asks of libvirt on one host; a scripted one takes its place in tests. */
import type { LibvirtClient } from './libvirt/client.ts';

/** An open session, as its user sees it: opening and closing are somebody else's. */
export type Libvirt = Pick<
  LibvirtClient,
  Exclude<keyof LibvirtClient, 'close' | 'drain' | 'ended' | 'isEnded' | typeof Symbol.dispose>
>;
