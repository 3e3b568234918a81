import { describe, expect, test } from 'vitest';
import { parseProvidersConfig } from '#agent/providers/config.ts';

function problemsOf(text: string): string[] {
  const result = parseProvidersConfig(text);
  return result.ok ? [] : result.problems;
}

const entry = (block: string) => `providers:\n  - name: a\n    type: kubernetes\n    ${block}`;

describe('a good file', () => {
  test('gets the documented defaults', () => {
    const result = parseProvidersConfig(entry('kubernetes: { image: "ubuntu/squid:1" }'));
    expect(result).toEqual({
      ok: true,
      providers: [
        {
          name: 'a',
          type: 'kubernetes',
          creationsPerMinute: 600,
          kubernetes: {
            image: 'ubuntu/squid:1',
            imagePullPolicy: 'IfNotPresent',
            imagePullSecrets: [],
            allowedClients: [
              '10.0.0.0/8',
              '172.16.0.0/12',
              '192.168.0.0/16',
              '100.64.0.0/10',
              '127.0.0.0/8',
              '::1/128',
              'fc00::/7',
            ],
            allowedPorts: ['80', '443', '1025-65535'],
            deniedDestinations: [
              '169.254.0.0/16',
              'fe80::/10',
              'fd00:ec2::254/128',
              '100.100.100.200/32',
            ],
            resources: {
              requests: { cpu: '50m', memory: '128Mi' },
              limits: { memory: '256Mi' },
            },
            runAsUser: 13,
            runAsGroup: 13,
            nodeSelector: {},
            tolerations: [],
            terminationGracePeriodSeconds: 10,
          },
        },
      ],
    });
  });

  test('takes ports and quantities as YAML numbers', () => {
    const block =
      'kubernetes: { image: i, allowedPorts: [80, "8000-9000"], resources: { limits: { cpu: 1 } } }';
    const result = parseProvidersConfig(entry(block));
    expect(result).toMatchObject({
      ok: true,
      providers: [
        {
          kubernetes: {
            allowedPorts: ['80', '8000-9000'],
            resources: { limits: { cpu: '1' } },
          },
        },
      ],
    });
  });
});

describe('a faulty file is refused with the path of', () => {
  test.each([
    [
      'an unknown key',
      'kubernetes: { image: i, imagee: x }',
      ['providers[0].kubernetes.imagee: unknown key'],
    ],
    [
      'a missing block',
      'x: 1',
      ['providers[0].kubernetes: is required', 'providers[0].x: unknown key'],
    ],
    ['a missing field', 'kubernetes: {}', ['providers[0].kubernetes.image: is required']],
    [
      'the block of another type',
      'kubernetes: { image: i }\n    gcp: { project: p }',
      ['providers[0].gcp: unknown key'],
    ],
    [
      'a range that is none',
      'kubernetes: { image: i, allowedClients: [10.0.0.0/33] }',
      [/^providers\[0\]\.kubernetes\.allowedClients\[0\]: must be an address or a CIDR/],
    ],
    [
      'a port that is none',
      'kubernetes: { image: i, allowedPorts: ["9-1"] }',
      [/^providers\[0\]\.kubernetes\.allowedPorts\[0\]: must be a port or a range/],
    ],
    [
      'an empty list of clients',
      'kubernetes: { image: i, allowedClients: [] }',
      [/^providers\[0\]\.kubernetes\.allowedClients: /],
    ],
    [
      'root as user',
      'kubernetes: { image: i, runAsUser: 0 }',
      [/^providers\[0\]\.kubernetes\.runAsUser: /],
    ],
  ])('%s', (_what, block, expected) => {
    const problems = problemsOf(entry(block));
    expect(problems).toHaveLength(expected.length);
    for (const line of expected) {
      expect(problems).toContainEqual(
        typeof line === 'string' ? line : expect.stringMatching(line),
      );
    }
  });

  test.each([
    ['', ['providers: is required']],
    ['providers: []', [/^providers: /]],
    ['provider: []', ['providers: is required', 'provider: unknown key']],
    ['providers: [{name: a}]', ['providers[0].type: is required']],
    [
      'providers: [{name: a, type: aws, aws: {account: a}}]',
      ['providers[0].type: unknown type "aws" (known: kubernetes, gcp, kvm)'],
    ],
    [
      'providers: [{name: a, type: constructor}]',
      ['providers[0].type: unknown type "constructor" (known: kubernetes, gcp, kvm)'],
    ],
    [
      'providers: [{name: A_, type: kubernetes, kubernetes: {image: i}}]',
      [/^providers\[0\]\.name: must be lower-case/],
    ],
    ['providers: [a', [/^Flow sequence .* at line 1, column 14$/]],
    ['a: 1\na: 2', [/unique/]],
  ])('%j', (text, expected) => {
    const problems = problemsOf(text);
    for (const line of expected) {
      expect(problems).toContainEqual(
        typeof line === 'string' ? line : expect.stringMatching(line),
      );
    }
    for (const problem of problems) expect(problem).not.toContain('\n');
  });

  test('a name that is used twice, and every other fault in the same run', () => {
    const one = '{name: a, type: kubernetes, kubernetes: {image: i}}';
    const text = `providers: [${one}, ${one}, {name: b, type: azure}]`;
    expect(problemsOf(text)).toEqual([
      'providers[2].type: unknown type "azure" (known: kubernetes, gcp, kvm)',
      'providers[1].name: "a" is already providers[0]',
    ]);
  });
});
