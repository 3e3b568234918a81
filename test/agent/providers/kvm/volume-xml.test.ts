import { describe, expect, test } from 'vitest';
import {
  formatOverlayVolume,
  formatRawVolume,
  parseVolume,
} from '#agent/providers/kvm/volume-xml.ts';

describe('a volume', () => {
  test('of bytes has the size of the file', () => {
    expect(parseVolume(formatRawVolume('a.iso', 4096))).toEqual({
      capacityBytes: 4096,
      fileBytes: 0,
      format: 'raw',
      createdAtMs: 0,
      changedAtMs: 0,
    });
  });

  test('over an image names it and has a size of its own', () => {
    const xml = formatOverlayVolume('a.qcow2', 2 ** 40, '/images/a&b.img');
    expect(parseVolume(xml)).toMatchObject({
      capacityBytes: 2 ** 40,
      format: 'qcow2',
      backingPath: '/images/a&b.img',
    });
  });

  test('is read as libvirt gives it', () => {
    const xml = `<volume type='file'><name>a.qcow2</name><key>/images/a.qcow2</key>
      <capacity unit='bytes'>41943040</capacity><allocation unit='bytes'>25755648</allocation>
      <physical unit='bytes'>25755648</physical>
      <target><path>/images/a.qcow2</path><format type='qcow2'/>
        <timestamps><atime>1796068319.5</atime><mtime>1796068320.25</mtime>
        <ctime>1796068320.25</ctime><btime>1796068300.75</btime></timestamps></target>
      <backingStore><path>/images/base.img</path><format type='qcow2'/></backingStore></volume>`;
    expect(parseVolume(xml)).toEqual({
      capacityBytes: 41943040,
      fileBytes: 25755648,
      format: 'qcow2',
      backingPath: '/images/base.img',
      createdAtMs: 1796068300750,
      changedAtMs: 1796068320250,
    });
    // File systems that do not keep the time of creation.
    const old = parseVolume(xml.replace(/<btime>.*?<\/btime>/, ''));
    expect(old?.createdAtMs).toBe(1796068320250);
  });

  test.each(['', '<pool/>', '<volume>'])('%j is none', (xml) => {
    expect(parseVolume(xml)).toBeUndefined();
  });
});
