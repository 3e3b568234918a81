/** Whether this machine can run a hypervisor host. */
import { existsSync } from 'node:fs';
import process from 'node:process';

const PROGRAMS = [
  '/usr/sbin/sshd',
  '/usr/sbin/libvirtd',
  '/usr/sbin/virtlogd',
  '/usr/sbin/dnsmasq',
  '/usr/bin/virsh',
  '/usr/bin/qemu-system-x86_64',
];

/** Why it cannot, or undefined. */
export function cannotRunHypervisor(): string | undefined {
  if (process.platform !== 'linux') return 'needs Linux';
  if (process.getuid?.() !== 0) return 'needs root, for namespaces';
  const missing = PROGRAMS.filter((program) => !existsSync(program));
  return missing.length === 0 ? undefined : `not installed: ${missing.join(', ')}`;
}
