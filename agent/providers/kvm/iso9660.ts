/**
 * A small ISO 9660 image with Joliet names: files in one folder, as NoCloud seeds need. Written as
 * ECMA-119 and the Joliet specification say; the same files always give the same bytes. Pure.
 */

const SECTOR = 2048;
/** Two sectors of the system area precede these. */
const FIRST_DESCRIPTOR = 16;
const VOLUME_TEXT = 32;
const DIRECTORY_RECORD = 33;
/** Joliet's longest name, in UTF-16 units. */
const NAME_LENGTH_MAX = 64;
const FILES_MAX = 30;
const FLAG_DIRECTORY = 2;
/** Escape sequence of UCS-2 level 3, the fullest that Joliet has. */
const JOLIET_ESCAPE = Buffer.from('%/E', 'latin1');

export interface IsoFile {
  /** As it is seen when mounted; letters, digits, ".", "-" and "_". */
  readonly name: string;
  readonly content: Uint8Array;
}

/** How one of the two trees writes its names. */
interface Tree {
  readonly text: (text: string, bytes: number) => Buffer;
  readonly fileName: (name: string, index: number) => Buffer;
}

const PLAIN: Tree = {
  text: (text, bytes) => Buffer.from(text.padEnd(bytes).slice(0, bytes), 'latin1'),
  // Unique and within 8.3; systems that read Joliet never show it.
  fileName: (_name, index) => Buffer.from(`FILE${index}.;1`, 'latin1'),
};

const JOLIET: Tree = {
  text(text, bytes) {
    const padded = text.padEnd(Math.floor(bytes / 2)).slice(0, Math.floor(bytes / 2));
    return Buffer.concat([ucs2(padded), Buffer.alloc(bytes % 2)]);
  },
  fileName: (name) => ucs2(`${name};1`),
};

/** `volume` is the label, at most 16 characters. Throws a RangeError for names that cannot be. */
export function buildIso(volume: string, files: readonly IsoFile[]): Buffer {
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  assertWritable(volume, sorted);
  // Descriptors (3), path tables (2 for each tree), one folder for each tree, then the files.
  const pathTables = { plain: FIRST_DESCRIPTOR + 3, joliet: FIRST_DESCRIPTOR + 5 };
  const folders = { plain: FIRST_DESCRIPTOR + 7, joliet: FIRST_DESCRIPTOR + 8 };
  let next = FIRST_DESCRIPTOR + 9;
  const placed = sorted.map(({ name, content }) => {
    const at = { name, content, sector: next };
    next += Math.ceil(content.length / SECTOR);
    return at;
  });
  const sectors = next;
  const image = Buffer.alloc(sectors * SECTOR);
  const put = (sector: number, bytes: Uint8Array) => image.set(bytes, sector * SECTOR);
  for (const [index, joliet] of [false, true].entries()) {
    const tree = joliet ? JOLIET : PLAIN;
    const table = joliet ? pathTables.joliet : pathTables.plain;
    const folder = joliet ? folders.joliet : folders.plain;
    const at = { volume, sectors, table, folder };
    put(FIRST_DESCRIPTOR + index, descriptor(tree, at));
    put(table, pathTable(folder, false));
    put(table + 1, pathTable(folder, true));
    put(folder, folderSector(tree, folder, placed));
  }
  put(FIRST_DESCRIPTOR + 2, Buffer.from('\xffCD001\x01', 'latin1'));
  for (const { sector, content } of placed) put(sector, content);
  return image;
}

function assertWritable(volume: string, files: readonly IsoFile[]): void {
  if (!/^[\w-]{1,16}$/.test(volume)) throw new RangeError(`"${volume}" is no label`);
  if (files.length > FILES_MAX) throw new RangeError(`more than ${FILES_MAX} files`);
  for (const { name } of files) {
    if (!/^[\w.-]+$/.test(name) || name.length > NAME_LENGTH_MAX) {
      throw new RangeError(`"${name}" is no name of a file here`);
    }
  }
}

interface Layout {
  readonly volume: string;
  readonly sectors: number;
  readonly table: number;
  readonly folder: number;
}

/** ECMA-119 §8.4 and §8.5: primary and supplementary volume descriptor. */
function descriptor(tree: Tree, { volume, sectors, table, folder }: Layout): Buffer {
  const bytes = Buffer.alloc(SECTOR);
  bytes[0] = tree === JOLIET ? 2 : 1;
  bytes.write('CD001\x01', 1, 'latin1');
  bytes.set(tree.text('', VOLUME_TEXT), 8);
  bytes.set(tree.text(volume, VOLUME_TEXT), 40);
  both32(bytes, 80, sectors);
  if (tree === JOLIET) bytes.set(JOLIET_ESCAPE, 88);
  both16(bytes, 120, 1);
  both16(bytes, 124, 1);
  both16(bytes, 128, SECTOR);
  both32(bytes, 132, PATH_TABLE_BYTES);
  bytes.writeUInt32LE(table, 140);
  bytes.writeUInt32BE(table + 1, 148);
  bytes.set(record(Buffer.of(0), { sector: folder, bytes: SECTOR, flags: FLAG_DIRECTORY }), 156);
  // Set, publisher, preparer, application: 128 characters each; then three names of files.
  bytes.set(tree.text('', 623), 190);
  // Four times that are not specified.
  for (const offset of [813, 830, 847, 864]) bytes.write('0'.repeat(16), offset, 'latin1');
  bytes[881] = 1;
  return bytes;
}

const PATH_TABLE_BYTES = 10;

/** The root alone (§9.4). */
function pathTable(folder: number, bigEndian: boolean): Buffer {
  const bytes = Buffer.alloc(PATH_TABLE_BYTES);
  bytes[0] = 1;
  if (bigEndian) bytes.writeUInt32BE(folder, 2);
  else bytes.writeUInt32LE(folder, 2);
  if (bigEndian) bytes.writeUInt16BE(1, 6);
  else bytes.writeUInt16LE(1, 6);
  return bytes;
}

function folderSector(
  tree: Tree,
  folder: number,
  files: readonly (IsoFile & { readonly sector: number })[],
): Buffer {
  const self = { sector: folder, bytes: SECTOR, flags: FLAG_DIRECTORY };
  const records = [record(Buffer.of(0), self), record(Buffer.of(1), self)];
  for (const [index, { name, content, sector }] of files.entries()) {
    records.push(record(tree.fileName(name, index), { sector, bytes: content.length, flags: 0 }));
  }
  const bytes = Buffer.concat(records);
  if (bytes.length > SECTOR) throw new RangeError('the names of the files are too long together');
  return bytes;
}

/** A directory record (§9.1); its date is not specified. */
function record(
  name: Buffer,
  of: { readonly sector: number; readonly bytes: number; readonly flags: number },
): Buffer {
  const length = DIRECTORY_RECORD + name.length;
  const bytes = Buffer.alloc(length + (length % 2));
  bytes[0] = bytes.length;
  both32(bytes, 2, of.sector);
  both32(bytes, 10, of.bytes);
  bytes[25] = of.flags;
  both16(bytes, 28, 1);
  bytes[32] = name.length;
  bytes.set(name, DIRECTORY_RECORD);
  return bytes;
}

/** Numbers stand in both byte orders (§7.2.3, §7.3.3). */
function both16(bytes: Buffer, offset: number, value: number): void {
  bytes.writeUInt16LE(value, offset);
  bytes.writeUInt16BE(value, offset + 2);
}

function both32(bytes: Buffer, offset: number, value: number): void {
  bytes.writeUInt32LE(value, offset);
  bytes.writeUInt32BE(value, offset + 4);
}

/** UTF-16, big-endian. */
function ucs2(text: string): Buffer {
  return Buffer.from(text, 'utf16le').swap16();
}
