/** Volumes as XML: what is created, and what is read of those that exist. Pure. */
import { child, parseXml, textAt, xml } from './xml.ts';

/** A volume of bytes as they are: a seed, or an image whose own format libvirt is not to look at. */
export function formatRawVolume(name: string, bytes: number): string {
  return (
    xml`<volume><name>${name}</name><capacity unit='bytes'>${bytes}</capacity>` +
    "<allocation unit='bytes'>0</allocation><target><format type='raw'/></target></volume>"
  );
}

/** A disk that holds what differs from the image at `backingPath`. */
export function formatOverlayVolume(name: string, bytes: number, backingPath: string): string {
  return (
    xml`<volume><name>${name}</name><capacity unit='bytes'>${bytes}</capacity>` +
    "<allocation unit='bytes'>0</allocation><target><format type='qcow2'/></target>" +
    xml`<backingStore><path>${backingPath}</path><format type='qcow2'/></backingStore></volume>`
  );
}

export interface VolumeDefinition {
  /** Size of the disk that it is; libvirt looks into what was uploaded. */
  readonly capacityBytes: number;
  /** Size of the file. */
  readonly fileBytes: number;
  readonly format: string;
  /** Absent when nothing backs the volume. */
  readonly backingPath?: string;
  /** When it was made, or changed where the file system does not keep that; 0 when unreadable. */
  readonly createdAtMs: number;
  /** When its content was last written; 0 when unreadable. */
  readonly changedAtMs: number;
}

/** undefined for what is no volume. */
export function parseVolume(text: string): VolumeDefinition | undefined {
  const volume = parseXml(text);
  if (volume?.localName !== 'volume') return undefined;
  const times = child(volume, 'target/timestamps');
  const backingPath = textAt(volume, 'backingStore/path');
  return {
    capacityBytes: Number(textAt(volume, 'capacity') ?? 0),
    fileBytes: Number(textAt(volume, 'physical') ?? 0),
    format: child(volume, 'target/format')?.getAttribute('type') ?? '',
    ...(backingPath === undefined || backingPath === '' ? {} : { backingPath }),
    createdAtMs: millis(textAt(times, 'btime') ?? textAt(times, 'ctime')),
    changedAtMs: millis(textAt(times, 'mtime')),
  };
}

/** Of seconds with a fraction. */
function millis(seconds: string | undefined): number {
  const value = Number(seconds ?? 0);
  return Number.isFinite(value) ? Math.floor(value * 1000) : 0;
}
