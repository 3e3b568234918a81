/** What a connection needs of an SSH client, under a test's hands. */
import { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import type { Client } from 'ssh2';
import { SshLink } from '#agent/providers/kvm/ssh/link.ts';
import type { Clock } from '#shared/clock.ts';

type Opened = (error: Error | undefined, stream: PassThrough & { close(): void }) => void;

export class FakeClient extends EventEmitter {
  readonly openings: { readonly path: string; readonly answer: Opened }[] = [];
  closed = false;

  openssh_forwardOutStreamLocal(path: string, answer: Opened): void {
    if (this.closed) throw new Error('Not connected');
    this.openings.push({ path, answer });
  }

  /** Opens the oldest stream that is asked for. */
  open(): PassThrough {
    const stream = Object.assign(new PassThrough(), { close: () => void stream.destroy() });
    this.openings.shift()?.answer(undefined, stream);
    return stream;
  }

  refuse(): void {
    const none = new PassThrough() as PassThrough & { close(): void };
    this.openings.shift()?.answer(new Error('(SSH) Channel open failure: open failed'), none);
  }

  end(): void {
    this.destroy();
  }

  destroy(): void {
    if (this.closed) return;
    this.closed = true;
    this.emit('close');
  }

  /** The connection over it. */
  asLink(host: string, clock: Clock): SshLink {
    const socket = new Socket();
    return new SshLink(this as unknown as Client, socket, host, clock);
  }
}
