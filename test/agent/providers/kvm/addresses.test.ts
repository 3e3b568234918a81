import { describe, expect, test } from 'vitest';
import { addressOf, chooseAddress } from '#agent/providers/kvm/addresses.ts';
import {
  type DomainInterface,
  LibvirtConnectionError,
  ADDRESS_SOURCE as SOURCE,
} from '#agent/providers/kvm/libvirt/client.ts';
import { refuse } from '#test/fakes/libvirt-host.ts';

const MAC = '52:54:00:00:00:01';
const DOMAIN = { name: 'a', uuid: '', id: 1 };
const signal = new AbortController().signal;
const at = (address: string, mac: string | null = MAC, type = 0): DomainInterface => ({
  name: 'eth0',
  mac,
  addresses: [{ type, address, prefix: 24 }],
});

describe('of the addresses of a machine', () => {
  test.each<[string, DomainInterface[], string | undefined]>([
    ['the first IPv4', [at('10.0.0.1'), at('10.0.0.2')], '10.0.0.1'],
    ['a public one', [at('203.0.113.9')], '203.0.113.9'],
    ['no IPv6', [at('2001:db8::1', MAC, 1), at('10.0.0.2')], '10.0.0.2'],
    ['no loopback', [at('127.0.0.1'), at('10.0.0.2')], '10.0.0.2'],
    ['no link-local one', [at('169.254.3.4'), at('10.0.0.2')], '10.0.0.2'],
    ['no multicast', [at('224.0.0.1')], undefined],
    ['no broadcast', [at('255.255.255.255')], undefined],
    ['none of a bridge in the guest', [at('172.17.0.1', '02:42:00:00:00:01')], undefined],
    ['none of nobody', [at('10.0.0.1', null)], undefined],
    ['its own in capital letters', [at('10.0.0.1', MAC.toUpperCase())], '10.0.0.1'],
    ['none', [], undefined],
  ])('%s is taken', (_what, interfaces, expected) => {
    expect(chooseAddress(interfaces, [MAC])).toBe(expected);
  });
});

describe('the sources', () => {
  const asking = (answers: Partial<Record<number, () => DomainInterface[]>>) => {
    const asked: number[] = [];
    const domainAddresses = async (_domain: unknown, source: number) => {
      asked.push(source);
      return answers[source]?.() ?? [];
    };
    return { asked, found: addressOf({ domainAddresses }, DOMAIN, [MAC], signal) };
  };

  test('are asked in turn, until one knows', async () => {
    const { asked, found } = asking({ [SOURCE.arp]: () => [at('10.0.0.3')] });
    expect(await found).toBe('10.0.0.3');
    expect(asked).toEqual([SOURCE.lease, SOURCE.arp]);
  });

  test.each(Object.entries(SOURCE))('that fail hide nothing of %s', async (_name, works) => {
    const failing = () => refuse('operationFailed', 'wrong nlmsg len');
    const answers = { [SOURCE.lease]: failing, [SOURCE.arp]: failing, [SOURCE.agent]: failing };
    const { found } = asking({ ...answers, [works]: () => [at('10.0.0.4')] });
    expect(await found).toBe('10.0.0.4');
  });

  test('that all fail mean that there is no address', async () => {
    const failing = () => refuse('agentUnresponsive', 'QEMU guest agent is not connected');
    const { asked, found } = asking({ 0: failing, 1: failing, 2: failing });
    expect(await found).toBeUndefined();
    expect(asked).toHaveLength(3);
  });

  test('are not asked on when the connection is gone', async () => {
    const gone = () => {
      throw new LibvirtConnectionError('ended', 'gone');
    };
    await expect(asking({ [SOURCE.lease]: gone }).found).rejects.toThrow('gone');
  });
});
