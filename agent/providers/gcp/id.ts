/** Ids of the gcp provider: `zones/<zone>/instances/<name>`; the project is the configuration's. */

const ZONE_PATTERN = /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const NAME_PATTERN = ZONE_PATTERN;
const ID_PATTERN = /^zones\/([^/]+)\/instances\/([^/]+)$/;

export interface InstanceRef {
  readonly zone: string;
  readonly name: string;
}

/** Whether Compute Engine can have a zone of that name. */
export function isZoneName(text: string): boolean {
  return ZONE_PATTERN.test(text);
}

export function formatId({ zone, name }: InstanceRef): string {
  return `zones/${zone}/instances/${name}`;
}

/** undefined for anything that `formatId` does not write. */
export function parseId(id: string): InstanceRef | undefined {
  const [, zone, name] = ID_PATTERN.exec(id) ?? [];
  if (zone === undefined || name === undefined) return undefined;
  if (!ZONE_PATTERN.test(zone) || !NAME_PATTERN.test(name)) return undefined;
  return { zone, name };
}

/** The last segment of a resource's URL or path: its name. */
export function nameOfUrl(url: string): string {
  return url.slice(url.lastIndexOf('/') + 1);
}
