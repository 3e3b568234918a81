/** Ids of the kvm provider: `hosts/<host>/domains/<name>`. */

const PATTERN =
  /^hosts\/([a-z0-9](?:[-a-z0-9.]{0,61}[a-z0-9])?)\/domains\/([A-Za-z0-9_](?:[-\w.+]{0,253}[\w+])?)$/;

export interface DomainRef {
  /** Name of the host in the configuration. */
  readonly host: string;
  /** Name of the domain at libvirt. */
  readonly name: string;
}

export function formatId({ host, name }: DomainRef): string {
  return `hosts/${host}/domains/${name}`;
}

/** undefined for what no machine of ours can have. */
export function parseId(id: string): DomainRef | undefined {
  const [, host, name] = PATTERN.exec(id) ?? [];
  return host === undefined || name === undefined ? undefined : { host, name };
}
