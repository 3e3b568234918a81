import { describe, expect, test } from 'vitest';
import { formatDomain, macOf, parseDomain } from '#agent/providers/kvm/domain-xml.ts';
import { type MachineMetadata, METADATA_URI } from '#agent/providers/kvm/metadata.ts';
import { parseXml } from '#agent/providers/kvm/xml.ts';
import { request } from './block.ts';

const UUID = '0a1b2c3d-1111-4222-8333-445566778899';
const machine: MachineMetadata = {
  mark: { uid: request.uid, installation: request.installation },
  proxy: { namespace: 'crawl', name: 'one' },
  createdAtMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
  plan: { image: 'debian-13', diskGiB: 10 },
  phase: 'seeding',
};
const spec = {
  name: request.name,
  uuid: UUID,
  metadata: machine,
  virtType: 'kvm',
  firmware: 'efi',
  cpus: 2,
  memoryMiB: 1024,
  disk: { pool: 'default', volume: 'a.qcow2' },
  seed: { pool: 'default', volume: 'a.iso' },
  network: 'default',
} as const;

describe('a domain', () => {
  test('is read back as it was written', () => {
    expect(parseDomain(formatDomain(spec))).toEqual({
      machine,
      macs: ['52:54:00:77:88:99'],
      memoryBytes: 1024 ** 3 / 1024,
      volumes: [spec.disk, spec.seed],
      files: [],
    });
  });

  test('keeps its mark in labels of the names that other backends use', () => {
    const xml = formatDomain(spec);
    expect(xml).toContain(`<egress:label name="proxy-operator-managed">true</egress:label>`);
    expect(xml).toContain(`<egress:label name="proxy-operator-uid">${request.uid}</egress:label>`);
    expect(xml).toContain(
      `<egress:label name="proxy-operator-installation">${request.installation}</egress:label>`,
    );
  });

  test.each([
    ['efi', /<os firmware='efi'>.*<feature enabled='no' name='secure-boot'\/>/],
    ['bios', /<os><type/],
  ] as const)('boots by %s', (firmware, pattern) => {
    expect(formatDomain({ ...spec, firmware })).toMatch(pattern);
  });

  test.each([
    ['kvm', /<domain type='kvm'>.*mode='host-passthrough'/, /tb-cache/],
    ['qemu', /<domain type='qemu'>.*<tb-cache.*qemu64/, /host-passthrough/],
  ] as const)('runs by %s', (virtType, has, hasNot) => {
    const xml = formatDomain({ ...spec, virtType });
    expect(xml).toMatch(has);
    expect(xml).not.toMatch(hasNot);
  });

  test('takes no markup from what stands in it', () => {
    const evil = `'"><a/>&amp;<!--]]>\u0000\ud800`;
    const xml = formatDomain({
      ...spec,
      name: evil,
      network: evil,
      disk: { pool: evil, volume: evil },
      metadata: { ...machine, mark: { uid: evil, installation: evil } },
    });
    const readable = `'"><a/>&amp;<!--]]>`;
    expect(parseXml(xml)?.getElementsByTagName('a')).toHaveLength(0);
    expect(parseDomain(xml)).toMatchObject({
      machine: { mark: { uid: readable, installation: readable } },
      volumes: [{ pool: readable, volume: readable }, spec.seed],
    });
  });

  test('has an address that follows from its UUID, in the range of QEMU', () => {
    expect(macOf(UUID)).toBe('52:54:00:77:88:99');
    expect(macOf(UUID.toUpperCase())).toBe('52:54:00:77:88:99');
  });
});

describe('what libvirt gives', () => {
  test('of a domain of somebody else has no machine in it', () => {
    const found = parseDomain(
      "<domain type='kvm'><name>theirs</name><memory unit='KiB'>2048</memory><devices>" +
        "<disk type='file'><source file='/images/a.img' index='1'/></disk>" +
        "<disk type='file' device='cdrom'/>" +
        "<interface type='bridge'><mac address='52:54:00:AA:BB:CC'/></interface></devices></domain>",
    );
    expect(found).toEqual({
      macs: ['52:54:00:aa:bb:cc'],
      memoryBytes: 2 * 1024 ** 2,
      volumes: [],
      files: ['/images/a.img'],
    });
  });

  test.each([
    ['another namespace', `<machine xmlns='https://example.net/'><phase>started</phase></machine>`],
    ['no namespace', '<machine><phase>started</phase></machine>'],
    ['another element', `<other xmlns='${METADATA_URI}'/>`],
  ])('with %s in its metadata is none of ours', (_what, inside) => {
    const xml = `<domain><name>a</name><metadata>${inside}</metadata></domain>`;
    expect(parseDomain(xml)?.machine).toBeUndefined();
  });

  test('with gaps in its metadata is read as far as it goes', () => {
    const xml = `<domain><metadata><x:machine xmlns:x='${METADATA_URI}'>
      <x:label name='proxy-operator-managed'>true</x:label>
      <x:createdAt>yesterday</x:createdAt><x:phase>hibernating</x:phase>
    </x:machine></metadata></domain>`;
    expect(parseDomain(xml)?.machine).toEqual({
      mark: { uid: '', installation: '' },
      proxy: { namespace: '', name: '' },
      createdAtMs: 0,
      plan: { image: '', diskGiB: Number.NaN },
      phase: 'started',
    });
  });

  test('without the label of the mark is disowned', () => {
    const xml = formatDomain(spec).replace(
      /<egress:label name="proxy-operator-managed">.*?label>/,
      '',
    );
    expect(parseDomain(xml)?.machine?.mark).toBeUndefined();
  });

  test.each(['', 'no xml', '<domain', '<network/>'])('as %j is no domain', (xml) => {
    expect(parseDomain(xml)).toBeUndefined();
  });
});
