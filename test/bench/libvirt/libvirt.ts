/**
 * The libvirt client beside libvirt's own, each in one session over SSH to the same host: how fast a
 * volume is uploaded, how many calls are answered.
 */

import { randomBytes } from 'node:crypto';
import { createReadStream, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LibvirtClient, Volume } from '#agent/providers/kvm/libvirt/client.ts';
import { LibvirtSessions } from '#agent/providers/kvm/sessions.ts';
import { SshPool } from '#agent/providers/kvm/ssh/pool.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { Hypervisor } from '#test/hypervisor/hypervisor.ts';
import { cannotRunHypervisor } from '#test/hypervisor/machine.ts';
import { atLeast, type Figure } from '../figure.ts';
import type { BenchOptions, Progress } from '../options.ts';
import { scratchFolder } from '../scratch.ts';
import { median } from '../statistics.ts';
import { Virsh } from './virsh.ts';

const MIB = 1024 * 1024;
const ROUNDS = 7;
const UPLOAD_MIB = 256;
const CALLS = 2000;
/** As many as a session has in flight. */
const CALLERS = 4;
const UPLOAD_RATIO_MIN = 0.8;
const CALLS_RATIO_MIN = 1;

export async function benchLibvirt(
  progress: Progress,
  { rounds = ROUNDS }: BenchOptions,
): Promise<Figure[]> {
  const reason = cannotRunHypervisor();
  if (reason !== undefined) throw new Error(`this machine has no hypervisor host: ${reason}`);
  using folder = scratchFolder();
  // In memory: it is the way there that is measured, not the disk.
  await using hypervisor = await Hypervisor.start({ poolBytes: 2 * UPLOAD_MIB * MIB });
  const signal = new AbortController().signal;
  const { host, port, user, socket, privateKey, knownHosts } = hypervisor;
  const credentials = async () => ({ privateKey, knownHosts });
  const pool = new SshPool({ clock, random: () => 0, credentials });
  const virsh = await Virsh.open(hypervisor, folder.path);
  try {
    const sessions = new LibvirtSessions({ clock, pool });
    const client = await sessions.dedicated({ host, port, user, socket }, signal);
    const file = join(folder.path, 'image');
    writeFileSync(file, randomBytes(UPLOAD_MIB * MIB));
    const volume = await makeVolume(client, signal);
    const measures = {
      upload: () => upload(client, volume, file, signal),
      virshUpload: () => virsh.run([`vol-upload --pool images --vol bench --file ${file}`]),
      calls: () => call(client, 1, signal),
      callsAtOnce: () => call(client, CALLERS, signal),
      virshCalls: () => virsh.run(Array.from({ length: CALLS }, () => 'hostname')),
    };
    // Once each without being counted: code is compiled, windows and caches have grown.
    const seconds: Record<keyof typeof measures, number[]> = {
      upload: [],
      virshUpload: [],
      calls: [],
      callsAtOnce: [],
      virshCalls: [],
    };
    for (let round = 0; round <= rounds; round++) {
      progress(round === 0 ? 'warm-up' : `round ${round} of ${rounds}`);
      for (const [name, measure] of Object.entries(measures)) {
        const startMs = clock.monotonicMs();
        await measure();
        const took = (clock.monotonicMs() - startMs) / 1000;
        if (round > 0) seconds[name as keyof typeof measures].push(took);
      }
    }
    return figuresOf(seconds);
  } finally {
    pool.close();
    await virsh.close();
  }
}

function figuresOf(
  seconds: Record<'upload' | 'virshUpload' | 'calls' | 'callsAtOnce' | 'virshCalls', number[]>,
): Figure[] {
  const speed = (name: keyof typeof seconds, amount: number) => amount / median(seconds[name]);
  const [upload, virshUpload] = [speed('upload', UPLOAD_MIB), speed('virshUpload', UPLOAD_MIB)];
  const [calls, atOnce] = [speed('calls', CALLS), speed('callsAtOnce', CALLS)];
  const virshCalls = speed('virshCalls', CALLS);
  return [
    { name: 'upload', value: upload, unit: 'MiB/s' },
    { name: 'upload by virsh', value: virshUpload, unit: 'MiB/s' },
    atLeast('upload to virsh', upload / virshUpload, 'ratio', UPLOAD_RATIO_MIN),
    { name: 'calls, one after the other', value: calls, unit: '/s' },
    { name: `calls, ${CALLERS} at once`, value: atOnce, unit: '/s' },
    { name: 'calls by virsh', value: virshCalls, unit: '/s' },
    atLeast('calls to virsh', calls / virshCalls, 'ratio', CALLS_RATIO_MIN),
    { name: `calls, ${CALLERS} at once, to virsh`, value: atOnce / virshCalls, unit: 'ratio' },
  ];
}

async function makeVolume(client: LibvirtClient, signal: AbortSignal): Promise<Volume> {
  const xml = `<volume><name>bench</name><capacity>${UPLOAD_MIB * MIB}</capacity>
    <target><format type='raw'/></target></volume>`;
  return await client.createVolume(await client.poolByName('images', signal), xml, signal);
}

async function upload(client: LibvirtClient, volume: Volume, file: string, signal: AbortSignal) {
  await client.upload(volume, createReadStream(file), { length: UPLOAD_MIB * MIB }, signal);
}

async function call(client: LibvirtClient, callers: number, signal: AbortSignal): Promise<void> {
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let count = 0; count < CALLS / callers; count++) await client.hostname(signal);
    }),
  );
}
