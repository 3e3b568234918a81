import { describe, expect, test } from 'vitest';
import { parseProvidersConfig } from '#agent/providers/config.ts';

const parsed = (gcp: string) =>
  parseProvidersConfig(`providers: [{name: a, type: gcp, gcp: ${gcp}}]`);

test('a gcp block gets the documented defaults', () => {
  expect(parsed('{project: my-project}')).toEqual({
    ok: true,
    providers: [
      {
        name: 'a',
        type: 'gcp',
        creationsPerMinute: 60,
        gcp: {
          project: 'my-project',
          network: 'default',
          networkTag: 'egress-proxy',
          diskSizeGb: 10,
          addressMode: 'external',
        },
      },
    ],
  });
});

test.each([
  '{project: "example.com:p"}',
  '{project: p, network: projects/host/global/networks/n, subnetwork: projects/host/regions/r/subnetworks/s}',
  '{project: p, endpoint: "https://compute.p.example.com"}',
  '{project: p, endpoint: "http://127.0.0.1:8080"}',
  '{project: p, firewall: {sourceRanges: ["0.0.0.0/0"], ports: [1, 65535]}}',
])('%s is fine', (block) => {
  expect(parsed(block)).toMatchObject({ ok: true });
});

describe('a faulty gcp block is refused with the path of', () => {
  test.each([
    ['{}', 'gcp.project: is required'],
    ['{project: My_Project}', 'gcp.project: must be the id of a project'],
    ['{project: p, zone: z}', 'gcp.zone: unknown key'],
    ['{project: p, network: a/b}', 'gcp.network: must be a name, or'],
    ['{project: p, networkTag: A}', 'gcp.networkTag: must be lower-case'],
    ['{project: p, diskSizeGb: 5}', 'gcp.diskSizeGb: '],
    ['{project: p, addressMode: both}', 'gcp.addressMode: '],
    ['{project: p, firewall: {}}', 'gcp.firewall.sourceRanges: is required'],
    ['{project: p, firewall: {sourceRanges: []}}', 'gcp.firewall.sourceRanges: '],
    ['{project: p, firewall: {sourceRanges: [anyone]}}', 'gcp.firewall.sourceRanges[0]: must be'],
    [
      '{project: p, firewall: {sourceRanges: [10.0.0.0/8, "fc00::/7"]}}',
      'gcp.firewall.sourceRanges: must not mix IPv4 and IPv6',
    ],
    ['{project: p, firewall: {sourceRanges: [10.0.0.1], ports: [0]}}', 'gcp.firewall.ports[0]: '],
    ['{project: p, endpoint: "http://compute.example.com"}', 'gcp.endpoint: must be https://'],
    ['{project: p, endpoint: "https://user:secret@host"}', 'gcp.endpoint: must be https://'],
    ['{project: p, endpoint: "https://host/path"}', 'gcp.endpoint: must be https://'],
  ])('%s', (block, problem) => {
    const result = parsed(block);
    const problems = result.ok ? [] : result.problems;
    expect(
      problems.some((line) => line.startsWith(`providers[0].${problem}`)),
      problems.join(),
    ).toBe(true);
    expect(problems.join()).not.toContain('secret@');
  });
});
