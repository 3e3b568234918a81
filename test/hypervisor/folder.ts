/** The files of a hypervisor host: configuration, keys, users. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Folder {
  readonly path: string;
}

export interface Addresses {
  readonly host: string;
  readonly gateway: string;
  readonly guestNetwork: string;
}

const FOLDERS = [
  'etc/ssh',
  'etc/libvirt/qemu/networks/autostart',
  'etc/libvirt/storage/autostart',
  'var/cache/libvirt',
  'var/lib/libvirt/boot',
  'var/lib/libvirt/dnsmasq',
  'var/lib/libvirt/images',
  'var/lib/libvirt/qemu/nvram',
  // virtlogd does not make it.
  'var/log/libvirt/qemu',
];

const USER_ID = 4711;

/** Makes it anew: what a killed libvirtd leaves behind would confuse the next one. */
export function makeFolder(addresses: Addresses): Folder {
  const path = mkdtempSync(join(tmpdir(), 'hypervisor-'));
  chmodSync(path, 0o755);
  // What Debian's package brings, without the networks that were defined on this machine.
  cpSync('/etc/libvirt', join(path, 'etc/libvirt'), { recursive: true, verbatimSymlinks: true });
  for (const own of ['qemu', 'storage', 'secrets']) {
    rmSync(join(path, 'etc/libvirt', own), { recursive: true, force: true });
  }
  for (const folder of FOLDERS) mkdirSync(join(path, folder), { recursive: true });
  execFileSync('chown', ['-R', 'libvirt-qemu:kvm', join(path, 'var/lib/libvirt/qemu')]);
  const write = (name: string, ...lines: readonly string[]) =>
    writeFileSync(join(path, name), `${lines.join('\n')}\n`);
  configureLibvirtd(path, 'auth_unix_rw = "none"');
  write('etc/libvirt/qemu.conf', 'security_driver = "none"', 'remember_owner = 0');
  write('network.xml', networkXml(addresses.guestNetwork));
  write('etc/hosts', '127.0.0.1 localhost');
  write('etc/resolv.conf', '');
  makeUser(path);
  makeSsh(path, addresses.host, write);
  return { path };
}

/** Writes `libvirtd.conf`, of which libvirtd takes notice when it starts. */
export function configureLibvirtd(path: string, ...lines: readonly string[]): void {
  const always = ['unix_sock_group = "libvirt"', 'unix_sock_rw_perms = "0770"'];
  const file = join(path, 'etc/libvirt/libvirtd.conf');
  writeFileSync(file, [...always, 'auth_unix_ro = "none"', ...lines, ''].join('\n'));
}

/** Another key for the host, of which `sshd` takes notice when it starts. */
export function makeHostKey(path: string): void {
  makeKey(join(path, 'etc/ssh/host_ed25519'));
}

function makeKey(file: string): void {
  rmSync(file, { force: true });
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', file]);
}

function makeUser(path: string): void {
  for (const name of ['passwd', 'group', 'shadow']) {
    copyFileSync(`/etc/${name}`, join(path, 'etc', name));
  }
  const group = join(path, 'etc/group');
  appendFileSync(join(path, 'etc/passwd'), `prov:x:${USER_ID}:${USER_ID}::/:/bin/bash\n`);
  appendFileSync(join(path, 'etc/shadow'), 'prov:*:19000:0:99999:7:::\n');
  appendFileSync(group, `prov:x:${USER_ID}:\n`);
  const members = readFileSync(group, 'utf8').replace(/^(libvirt:x:\d+:).*$/m, '$1prov');
  writeFileSync(group, members);
}

function makeSsh(
  path: string,
  address: string,
  write: (name: string, ...lines: readonly string[]) => void,
): void {
  makeHostKey(path);
  makeKey(join(path, 'client_ed25519'));
  copyFileSync(join(path, 'client_ed25519.pub'), join(path, 'etc/ssh/authorized_keys'));
  write(
    'etc/ssh/sshd_config',
    'Port 22',
    `ListenAddress ${address}`,
    'HostKey /etc/ssh/host_ed25519',
    'PidFile none',
    'AuthorizedKeysFile /etc/ssh/authorized_keys',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin no',
    'UsePAM no',
    'AllowStreamLocalForwarding yes',
    'MaxStartups 100',
  );
}

/** `route`: guests are reached from outside. `no-ping`: leases without dnsmasq's check of 3 s. */
function networkXml(guestNetwork: string): string {
  return `<network xmlns:dnsmasq='http://libvirt.org/schemas/network/dnsmasq/1.0'>
  <name>vmnet</name>
  <forward mode='route'/>
  <bridge name='virbr0' stp='off' delay='0'/>
  <ip address='${guestNetwork}.1' netmask='255.255.255.0'>
    <dhcp><range start='${guestNetwork}.100' end='${guestNetwork}.199'/></dhcp>
  </ip>
  <dnsmasq:options><dnsmasq:option value='no-ping'/></dnsmasq:options>
</network>`;
}
