/** libvirt's own client, in one session over `ssh`, that is told commands and answers them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Hypervisor } from '#test/hypervisor/hypervisor.ts';

export class Virsh {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  /** The folder it runs in: it can print it without asking the host, which marks an end. */
  readonly #folder: string;

  private constructor(process: ChildProcess, lines: AsyncIterator<string>, folder: string) {
    this.#process = process;
    this.#lines = lines;
    this.#folder = folder;
  }

  /** Resolves when the session is open. `folder` takes what `ssh` needs as files. */
  static async open(hypervisor: Hypervisor, folder: string): Promise<Virsh> {
    const { host, user, privateKeyFile, knownHosts } = hypervisor;
    const knownHostsFile = join(folder, 'known_hosts');
    const ssh = join(folder, 'ssh');
    writeFileSync(knownHostsFile, knownHosts);
    const options = `-o BatchMode=yes -o UserKnownHostsFile=${knownHostsFile} -i ${privateKeyFile}`;
    writeFileSync(ssh, `#!/bin/sh\nexec ssh ${options} "$@"\n`);
    chmodSync(ssh, 0o755);
    const uri = `qemu+ssh://${user}@${host}/system?command=${ssh}`;
    // By lines: its output is a pipe, which it would fill first.
    const child = spawn('stdbuf', ['-oL', 'virsh', '-q', '-c', uri], {
      cwd: folder,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const virsh = new Virsh(child, lines, folder);
    await virsh.run(['hostname']);
    return virsh;
  }

  /** Runs commands one after the other, and resolves when the last one is done. */
  async run(commands: readonly string[]): Promise<void> {
    this.#process.stdin?.write([...commands, 'pwd', ''].join('\n'));
    for (;;) {
      const { done, value } = await this.#lines.next();
      if (done === true) throw new Error('virsh has ended');
      if (value === this.#folder) return;
    }
  }

  async close(): Promise<void> {
    this.#process.stdin?.end('quit\n');
    if (this.#process.exitCode === null) await once(this.#process, 'exit');
  }
}
