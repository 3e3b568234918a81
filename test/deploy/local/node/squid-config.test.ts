import { expect, it } from 'vitest';
import { mapPaths, pinSquidConfig } from '#deploy/local/node/squid-config.ts';

const place = {
  ip: '127.42.0.9',
  hostname: 'proxy-1',
  mounts: [
    { containerPath: '/etc/squid/auth', hostPath: '/host/auth' },
    { containerPath: '/etc/squid', hostPath: '/host/etc' },
  ],
};
const pin = (text: string) => pinSquidConfig(text, place).split('\n');

it.each([
  ['http_port 3128', 'http_port 127.42.0.9:3128'],
  ['http_port 0.0.0.0:3128 name=a', 'http_port 127.42.0.9:3128 name=a'],
  ['  http_port [::]:8080', '  http_port 127.42.0.9:8080'],
  ['https_port 443 tls-cert=/x', 'https_port 127.42.0.9:443 tls-cert=/x'],
  ['pid_filename /run/squid.pid', 'pid_filename none'],
  ['# http_port 3128', '# http_port 3128'],
  ['acl ports port 3128', 'acl ports port 3128'],
  ['include /etc/squid/conf.d/*.conf', 'include /host/etc/conf.d/*.conf'],
  [
    'auth_param basic program /usr/lib/squid/basic_ncsa_auth "/etc/squid/auth/users"',
    'auth_param basic program /usr/lib/squid/basic_ncsa_auth "/host/auth/users"',
  ],
])('makes of %j the line %j', (line, pinned) => {
  expect(pin(line)[0]).toBe(pinned);
});

it('leaves by the pod address, once, whatever else is configured', () => {
  const lines = pin('http_port 3128\n');
  expect(lines.filter((line) => line.startsWith('tcp_outgoing_address'))).toEqual([
    'tcp_outgoing_address 127.42.0.9',
  ]);
});

it('adds only what the configuration does not say', () => {
  const lines = pin('access_log none\ncache_log /dev/null');
  expect(lines.filter((line) => /^(access|cache)_log/.test(line))).toEqual([
    'access_log none',
    'cache_log /dev/null',
  ]);
  expect(lines).toContain('pid_filename none');
  expect(lines).toContain('visible_hostname proxy-1');
});

it.each([
  ['/etc/squid/squid.conf', '/host/etc/squid.conf'],
  ['/etc/squid', '/host/etc'],
  ['/etc/squidx/file', '/etc/squidx/file'],
  ['/opt/etc/squid/file', '/opt/etc/squid/file'],
  ['stdio:/etc/squid/log', 'stdio:/host/etc/log'],
])('maps the container path %s to %s', (path, host) => {
  expect(mapPaths(path, place.mounts)).toBe(host);
});
