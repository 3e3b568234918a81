/** User-data that makes a guest a proxy. `version` is what Squid calls itself in `Via`. */

export interface SquidWish {
  readonly version: string;
  readonly port: number;
}

function squidConf({ version, port }: SquidWish): string[] {
  return [
    `http_port ${port}`,
    'acl clients src 10.201.0.0/16',
    'http_access allow clients',
    'http_access deny all',
    'cache deny all',
    'pinger_enable off',
    'shutdown_lifetime 1 second',
    `visible_hostname ${version}`,
  ];
}

/** A script, for the mini guest, which knows nothing else. */
export function squidScript(wish: SquidWish): string {
  const conf = squidConf(wish).join('\n');
  return `#!/bin/sh\ncat > /etc/squid/squid.conf <<'CONF'\n${conf}\nCONF\nsquid -sYC\n`;
}

/** For cloud-init; Squid starts by itself after it. */
export function squidCloudConfig(wish: SquidWish): string {
  const conf = squidConf(wish)
    .map((line) => `      ${line}\n`)
    .join('');
  return (
    '#cloud-config\nwrite_files:\n  - path: /etc/squid/squid.conf\n' +
    `    permissions: "0644"\n    content: |\n${conf}`
  );
}
