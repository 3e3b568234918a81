/** The TCP connection below SSH. */
import { Socket } from 'node:net';
import process from 'node:process';

/**
 * Writes everything of one turn at once: ssh2 writes each packet in three pieces, which would be
 * three system calls. Sent without delay: a small message would wait for the acknowledgement of the
 * one before, 40 ms a call.
 */
export class GatheringSocket extends Socket {
  #gathering = false;

  constructor() {
    super();
    this.setNoDelay(true);
  }

  override _write(
    ...args: Parameters<NonNullable<Socket['_write']>>
  ): void {
    if (!this.#gathering) {
      this.#gathering = true;
      this.cork();
      process.nextTick(() => {
        this.#gathering = false;
        this.uncork();
      });
    }
    return super.write(...args);
  }
}
