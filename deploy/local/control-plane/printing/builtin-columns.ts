/** Tables of the built-in kinds, column by column as the API server defines them. */
import { isJsonObject, type JsonObject, objectOf } from '../json.ts';
import {
  ageColumn,
  count,
  createdAtColumn,
  field,
  fieldObjects,
  fieldText,
  nameColumn,
  type TableColumn,
  textColumn,
} from './columns.ts';
import { eventColumns } from './event-columns.ts';
import { podColumns } from './pod-columns.ts';

const NONE = '<none>';
const UNKNOWN = '<unknown>';
const ROLE_LABEL = 'node-role.kubernetes.io/';

const COLUMNS: Readonly<Record<string, readonly TableColumn[]>> = {
  pods: podColumns,
  events: eventColumns,
  namespaces: [
    nameColumn,
    textColumn('Status', (namespace) => fieldText(namespace, 'status', 'phase')),
    ageColumn,
  ],
  secrets: [
    nameColumn,
    textColumn('Type', (secret) => fieldText(secret, 'type')),
    textColumn('Data', (secret) => String(count(secret.data))),
    ageColumn,
  ],
  configmaps: [
    nameColumn,
    textColumn('Data', (map) => String(count(map.data) + count(map.binaryData))),
    ageColumn,
  ],
  serviceaccounts: [
    nameColumn,
    textColumn('Secrets', (account) => String(count(account.secrets))),
    ageColumn,
  ],
  leases: [
    nameColumn,
    textColumn('Holder', (lease) => fieldText(lease, 'spec', 'holderIdentity')),
    ageColumn,
  ],
  services: [
    nameColumn,
    textColumn('Type', (service) => fieldText(service, 'spec', 'type')),
    textColumn('Cluster-IP', (service) => fieldText(service, 'spec', 'clusterIP') || NONE),
    textColumn('External-IP', externalIp),
    textColumn('Port(s)', servicePorts),
    ageColumn,
    textColumn('Selector', (service) => selector(field(service, 'spec', 'selector')), 1),
  ],
  nodes: [
    nameColumn,
    textColumn('Status', nodeStatus),
    textColumn('Roles', nodeRoles),
    ageColumn,
    textColumn('Version', (node) => fieldText(node, 'status', 'nodeInfo', 'kubeletVersion')),
    textColumn('Internal-IP', (node) => nodeAddress(node, 'InternalIP'), 1),
    textColumn('External-IP', (node) => nodeAddress(node, 'ExternalIP'), 1),
    textColumn('OS-Image', (node) => nodeInfo(node, 'osImage'), 1),
    textColumn('Kernel-Version', (node) => nodeInfo(node, 'kernelVersion'), 1),
    textColumn('Container-Runtime', (node) => nodeInfo(node, 'containerRuntimeVersion'), 1),
  ],
  roles: [nameColumn, createdAtColumn],
  clusterroles: [nameColumn, createdAtColumn],
  rolebindings: bindingColumns(),
  clusterrolebindings: bindingColumns(),
};

/** Columns of a built-in resource by its plural name; name and creation time for others. */
export function builtinColumns(resource: string): readonly TableColumn[] {
  return Object.hasOwn(COLUMNS, resource)
    ? (COLUMNS[resource] ?? [])
    : [nameColumn, createdAtColumn];
}

function bindingColumns(): TableColumn[] {
  return [
    nameColumn,
    textColumn('Role', ({ roleRef }) =>
      isJsonObject(roleRef) ? `${fieldText(roleRef, 'kind')}/${fieldText(roleRef, 'name')}` : '',
    ),
    ageColumn,
    textColumn('Users', (binding) => subjects(binding, 'User'), 1),
    textColumn('Groups', (binding) => subjects(binding, 'Group'), 1),
    textColumn('ServiceAccounts', (binding) => subjects(binding, 'ServiceAccount'), 1),
  ];
}

function subjects(binding: JsonObject, kind: string): string {
  return fieldObjects(binding, 'subjects')
    .filter((subject) => subject.kind === kind)
    .map((subject) =>
      kind === 'ServiceAccount'
        ? `${fieldText(subject, 'namespace')}/${fieldText(subject, 'name')}`
        : fieldText(subject, 'name'),
    )
    .join(', ');
}

function nodeStatus(node: JsonObject): string {
  const ready = fieldObjects(node, 'status', 'conditions').find(({ type }) => type === 'Ready');
  const state = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady';
  return field(node, 'spec', 'unschedulable') === true ? `${state},SchedulingDisabled` : state;
}

function nodeRoles(node: JsonObject): string {
  const roles = Object.keys(objectOf(field(node, 'metadata', 'labels')))
    .filter((label) => label.startsWith(ROLE_LABEL) && label !== ROLE_LABEL)
    .map((label) => label.slice(ROLE_LABEL.length));
  return roles.sort().join(',') || NONE;
}

function nodeAddress(node: JsonObject, wanted: string): string {
  const address = fieldObjects(node, 'status', 'addresses').find(({ type }) => type === wanted);
  return address === undefined ? NONE : fieldText(address, 'address');
}

function nodeInfo(node: JsonObject, name: string): string {
  return fieldText(node, 'status', 'nodeInfo', name) || UNKNOWN;
}

function externalIp(service: JsonObject): string {
  const assigned = fieldObjects(service, 'status', 'loadBalancer', 'ingress')
    .map((ingress) => fieldText(ingress, 'ip') || fieldText(ingress, 'hostname'))
    .join(',');
  if (assigned !== '') return assigned;
  return fieldText(service, 'spec', 'type') === 'LoadBalancer' ? '<pending>' : NONE;
}

function servicePorts(service: JsonObject): string {
  const ports = fieldObjects(service, 'spec', 'ports').map(
    ({ port, nodePort, protocol = 'TCP' }) =>
      nodePort === undefined ? `${port}/${protocol}` : `${port}:${nodePort}/${protocol}`,
  );
  return ports.join(',') || NONE;
}

function selector(value: unknown): string {
  const labels = Object.entries(typeof value === 'object' && value !== null ? value : {});
  return labels.map(([key, label]) => `${key}=${label}`).join(',') || NONE;
}
