import { describe, expect, test } from 'vitest';
import { buildRule, compareRule, ruleName } from '#agent/providers/gcp/firewall.ts';
import { buildInstance, requestProblem } from '#agent/providers/gcp/request.ts';
import { requestIdOf } from '#agent/providers/gcp/request-id.ts';
import { firewallSchema } from '#agent/providers/gcp/resources.ts';
import { IMAGE } from '#test/fakes/compute/server.ts';
import { configWith, request } from './block.ts';

const block = configWith().gcp;
const placed = (placement: object) => ({
  ...request,
  placement: { ...request.placement, ...placement },
});

describe('a request that can never work says what is wrong with it:', () => {
  test.each([
    [{ placement: {} }, 'spec.placement lacks zone, machineType, image'],
    [placed({ machineType: undefined }), 'spec.placement lacks machineType'],
    [placed({ zone: 'Europe' }), 'spec.placement.zone: "Europe" is not the name of a zone'],
    [placed({ zone: '../x' }), 'spec.placement.zone: "../x"'],
    [placed({ region: 'us-east1' }), '"europe-west1-b" is not in the region "us-east1"'],
    [placed({ machineType: 'zones/a/machineTypes/b' }), 'spec.placement.machineType: '],
    [placed({ image: 'debian 13' }), 'spec.placement.image: "debian 13" must be projects/PROJECT'],
    [placed({ image: 'projects/p/global/images/../x' }), 'spec.placement.image: '],
    [{ installation: 'Not.A.Label' }, 'the installation "Not.A.Label" cannot be a label'],
    [{ cloudInit: 'x'.repeat(262_145) }, 'spec.cloudInit: is longer than the 262144 bytes'],
  ])('%#', (over, problem) => {
    expect(requestProblem({ ...request, ...over }, block)).toContain(problem);
  });

  test('a port that the firewall does not open', () => {
    const closed = configWith({ firewall: { sourceRanges: ['10.0.0.0/8'], ports: [8080] } }).gcp;
    expect(requestProblem(request, closed)).toBe(
      'spec.port: 3128 is not among firewall.ports of the provider (8080)',
    );
  });

  test.each([IMAGE, 'own-image', 'projects/example.com:p/global/images/debian-13-v1'])(
    'and nothing of one with the image %s',
    (image) => {
      expect(requestProblem(placed({ image, region: 'europe-west1' }), block)).toBeUndefined();
    },
  );
});

describe('the instance', () => {
  test('has mark, boot disk, tag, address and user-data in one insert', () => {
    const labels = {
      'proxy-operator-managed': 'true',
      'proxy-operator-uid': request.uid,
      'proxy-operator-installation': 'here',
    };
    expect(buildInstance({ ...request, cloudInit: '#cloud-config\n' }, block)).toEqual({
      name: 'proxy-abcdefghijklmnop',
      description: 'egress proxy crawl/one',
      machineType: 'zones/europe-west1-b/machineTypes/e2-micro',
      labels,
      tags: { items: ['egress-proxy'] },
      disks: [
        {
          boot: true,
          autoDelete: true,
          type: 'PERSISTENT',
          mode: 'READ_WRITE',
          initializeParams: { sourceImage: IMAGE, diskSizeGb: '10', labels },
        },
      ],
      networkInterfaces: [
        {
          network: 'global/networks/default',
          accessConfigs: [{ name: 'External NAT', type: 'ONE_TO_ONE_NAT' }],
        },
      ],
      metadata: { items: [{ key: 'user-data', value: '#cloud-config\n' }] },
    });
  });

  test('takes network, size and tag from the configuration, and no address when it is internal', () => {
    const { gcp } = configWith({
      network: 'projects/host/global/networks/shared',
      subnetwork: 'egress',
      networkTag: 'px',
      diskSizeGb: 30,
      addressMode: 'internal',
    });
    expect(buildInstance(placed({ image: 'own' }), gcp)).toMatchObject({
      tags: { items: ['px'] },
      disks: [{ initializeParams: { sourceImage: 'global/images/own', diskSizeGb: '30' } }],
      networkInterfaces: [
        {
          network: 'projects/host/global/networks/shared',
          subnetwork: 'regions/europe-west1/subnetworks/egress',
        },
      ],
    });
    expect(JSON.stringify(buildInstance(request, gcp))).not.toMatch(/accessConfigs|metadata/);
  });
});

describe('the id of a request', () => {
  const of = { uid: 'u', installation: 'i', zone: 'z-1', generation: 3, attempt: 0 };

  test('is a UUID and the same for the same machine', () => {
    expect(requestIdOf(of)).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect(requestIdOf({ ...of })).toBe(requestIdOf(of));
  });

  test('differs with everything that makes another machine of it', () => {
    const others = [
      of,
      { ...of, uid: 'v' },
      { ...of, installation: 'j' },
      { ...of, zone: 'z-2' },
      { ...of, generation: 4 },
      { ...of, attempt: 1 },
    ];
    expect(new Set(others.map(requestIdOf)).size).toBe(others.length);
  });
});

describe('the firewall rule', () => {
  const owner = { provider: 'gcp-eu', installation: 'here' };
  const { gcp } = configWith({ firewall: { sourceRanges: ['10.0.0.0/8', '192.0.2.7'] } });
  const firewall = gcp.firewall ?? { sourceRanges: [], ports: [] };
  const rule = buildRule(owner, gcp, firewall);
  const compared = (over: object) =>
    compareRule(firewallSchema.parse({ ...rule, ...over }), owner, gcp, firewall);

  test('has a name of its own for each provider and installation', () => {
    const names = [
      ruleName(owner),
      ruleName({ ...owner, provider: 'b' }),
      ruleName({ ...owner, installation: 'b' }),
    ];
    expect(new Set(names).size).toBe(3);
    expect(names[0]).toMatch(/^egress-proxy-[0-9a-f]{12}$/);
  });

  test('opens the proxy ports to the ranges, on the tagged instances alone', () => {
    expect(rule).toMatchObject({
      direction: 'INGRESS',
      sourceRanges: ['10.0.0.0/8', '192.0.2.7'],
      targetTags: ['egress-proxy'],
      allowed: [{ IPProtocol: 'tcp', ports: ['3128'] }],
    });
  });

  test.each<[string, object, string]>([
    ['as it was made', {}, 'same'],
    ['in the API’s own writing', { sourceRanges: ['192.0.2.7/32', '10.0.0.0/8'] }, 'same'],
    ['with another range', { sourceRanges: ['0.0.0.0/0'] }, 'differs'],
    ['with another port', { allowed: [{ IPProtocol: 'tcp', ports: ['22'] }] }, 'differs'],
    ['with another protocol', { allowed: [{ IPProtocol: 'all' }] }, 'differs'],
    ['with a second opening', { allowed: [rule, rule] }, 'differs'],
    ['that is switched off', { disabled: true }, 'differs'],
    ['for all instances', { targetTags: [] }, 'differs'],
    ['in another network', { network: 'global/networks/other' }, 'differs'],
    ['of somebody else', { description: 'mine' }, 'foreign'],
  ])('%s: %s is %s', (_what, over, finding) => {
    expect(compared(over)).toBe(finding);
  });
});
