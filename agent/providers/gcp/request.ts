/** The instance that is asked for, and what keeps a request from ever being one. Pure. */
import type { GcpBlock } from '../config-gcp.ts';
import { markLabels } from '../mark.ts';
import type { CreateRequest } from '../provider.ts';
import { isZoneName } from './id.ts';
import { descriptionOf, markProblem } from './labels.ts';

const REQUIRED = ['zone', 'machineType', 'image'] as const;
/** The API's own limit for one metadata value. */
const USER_DATA_BYTES_MAX = 262_144;
/** A family or image of a project, or a name in the own project. */
const IMAGE_PATTERN =
  /^(?:projects\/[a-z][-a-z0-9.:]{0,90}\/global\/images\/(?:family\/)?)?[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const MACHINE_TYPE_PATTERN = /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** What is wrong with a request, in the terms of the Proxy; undefined when it can be sent. */
export function requestProblem(request: CreateRequest, block: GcpBlock): string | undefined {
  const { placement, port } = request;
  const missing = REQUIRED.filter((field) => !placement[field]);
  if (missing.length > 0) {
    return `spec.placement lacks ${missing.join(', ')}: an instance of Compute Engine needs them`;
  }
  const { zone = '', machineType = '', image = '', region } = placement;
  if (!isZoneName(zone)) return `spec.placement.zone: "${zone}" is not the name of a zone`;
  if (region !== undefined && !zone.startsWith(`${region}-`)) {
    return `spec.placement.zone: "${zone}" is not in the region "${region}"`;
  }
  if (!MACHINE_TYPE_PATTERN.test(machineType)) {
    return `spec.placement.machineType: "${machineType}" is not the name of a machine type`;
  }
  if (!IMAGE_PATTERN.test(image)) {
    const forms = 'projects/PROJECT/global/images/[family/]NAME, or a name in the own project';
    return `spec.placement.image: "${image}" must be ${forms}`;
  }
  if (Buffer.byteLength(request.cloudInit ?? '') > USER_DATA_BYTES_MAX) {
    return `spec.cloudInit: is longer than the ${USER_DATA_BYTES_MAX} bytes that an instance takes`;
  }
  if (block.firewall !== undefined && !block.firewall.ports.includes(port)) {
    const { ports } = block.firewall;
    return `spec.port: ${port} is not among firewall.ports of the provider (${ports.join(', ')})`;
  }
  return markProblem(request);
}

/** The body of the insert. `request` has passed `requestProblem`. */
export function buildInstance(request: CreateRequest, block: GcpBlock): object {
  const { placement, cloudInit } = request;
  return {
    name: request.name,
    description: descriptionOf(request.namespace, request.proxyName),
    machineType: `zones/${placement.zone}/machineTypes/${placement.machineType}`,
    labels: markLabels(request),
    tags: { items: [block.networkTag] },
    disks: [
      {
        boot: true,
        autoDelete: true,
        type: 'PERSISTENT',
        mode: 'READ_WRITE',
        initializeParams: {
          sourceImage: imagePath(placement.image ?? ''),
          diskSizeGb: String(block.diskSizeGb),
          labels: markLabels(request),
        },
      },
    ],
    networkInterfaces: [
      {
        network: networkPath(block.network),
        ...(block.subnetwork === undefined
          ? {}
          : { subnetwork: subnetworkPath(block.subnetwork, placement.zone ?? '') }),
        ...(block.addressMode === 'external'
          ? { accessConfigs: [{ name: 'External NAT', type: 'ONE_TO_ONE_NAT' }] }
          : {}),
      },
    ],
    ...(cloudInit === undefined
      ? {}
      : { metadata: { items: [{ key: 'user-data', value: cloudInit }] } }),
  };
}

export function networkPath(network: string): string {
  return network.includes('/') ? network : `global/networks/${network}`;
}

function subnetworkPath(subnetwork: string, zone: string): string {
  if (subnetwork.includes('/')) return subnetwork;
  return `regions/${zone.slice(0, zone.lastIndexOf('-'))}/subnetworks/${subnetwork}`;
}

function imagePath(image: string): string {
  return image.includes('/') ? image : `global/images/${image}`;
}
