/**
 * What the API's types say beyond their structure: how lists merge (server-side apply and
 * strategic merge patch), which objects are replaced as a whole, enums, defaults. The generator
 * lays this over the structure that it reads from the Kubernetes client.
 */
import type { JsonObject, JsonValue } from '../../json.ts';

/** `x-kubernetes-*` keywords of a list whose items have a key. */
function mapBy(keys: readonly string[], strategy = 'merge'): JsonObject {
  return {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': [...keys],
    'x-kubernetes-patch-merge-key': keys[0] ?? '',
    'x-kubernetes-patch-strategy': strategy,
  };
}

const SET: JsonObject = {
  'x-kubernetes-list-type': 'set',
  'x-kubernetes-patch-strategy': 'merge',
};

const ATOMIC: JsonObject = { 'x-kubernetes-map-type': 'atomic' };

const oneOf = (...values: JsonValue[]): JsonObject => ({ enum: values });
const byDefault = (value: JsonValue): JsonObject => ({ default: value });

const PROTOCOL = oneOf('SCTP', 'TCP', 'UDP');
const CONDITION_STATUS = oneOf('True', 'False', 'Unknown');

/** Keywords of single properties, by `Definition.property`. */
export const PROPERTY_OVERLAY: Readonly<Record<string, JsonObject>> = {
  'ObjectMeta.finalizers': SET,
  'ObjectMeta.ownerReferences': mapBy(['uid']),
  'Condition.status': CONDITION_STATUS,

  'PodSpec.containers': mapBy(['name']),
  'PodSpec.initContainers': mapBy(['name']),
  'PodSpec.ephemeralContainers': mapBy(['name']),
  'PodSpec.volumes': mapBy(['name'], 'merge,retainKeys'),
  'PodSpec.imagePullSecrets': mapBy(['name']),
  'PodSpec.hostAliases': mapBy(['ip']),
  'PodSpec.topologySpreadConstraints': mapBy(['topologyKey', 'whenUnsatisfiable']),
  'PodSpec.resourceClaims': mapBy(['name'], 'merge,retainKeys'),
  'PodSpec.schedulingGates': mapBy(['name']),
  'PodSpec.nodeSelector': ATOMIC,
  'PodSpec.restartPolicy': { ...oneOf('Always', 'Never', 'OnFailure'), ...byDefault('Always') },
  'PodSpec.dnsPolicy': {
    ...oneOf('ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'),
    ...byDefault('ClusterFirst'),
  },
  'PodSpec.preemptionPolicy': oneOf('Never', 'PreemptLowerPriority'),
  'PodSpec.schedulerName': byDefault('default-scheduler'),
  'PodSpec.terminationGracePeriodSeconds': byDefault(30),
  'PodStatus.conditions': mapBy(['type']),
  'PodStatus.podIPs': mapBy(['ip']),
  'PodStatus.resourceClaimStatuses': mapBy(['name'], 'merge,retainKeys'),
  'PodStatus.phase': oneOf('Failed', 'Pending', 'Running', 'Succeeded', 'Unknown'),

  'Container.env': mapBy(['name']),
  'Container.ports': mapBy(['containerPort', 'protocol']),
  'Container.volumeMounts': mapBy(['mountPath']),
  'Container.volumeDevices': mapBy(['devicePath']),
  'Container.imagePullPolicy': oneOf('Always', 'IfNotPresent', 'Never'),
  'Container.terminationMessagePath': byDefault('/dev/termination-log'),
  'Container.terminationMessagePolicy': {
    ...oneOf('FallbackToLogsOnError', 'File'),
    ...byDefault('File'),
  },
  'EphemeralContainer.env': mapBy(['name']),
  'EphemeralContainer.ports': mapBy(['containerPort', 'protocol']),
  'EphemeralContainer.volumeMounts': mapBy(['mountPath']),
  'EphemeralContainer.volumeDevices': mapBy(['devicePath']),
  'ContainerPort.protocol': { ...PROTOCOL, ...byDefault('TCP') },
  'ResourceRequirements.claims': mapBy(['name']),
  'Toleration.operator': oneOf('Equal', 'Exists', 'Gt', 'Lt'),
  'Toleration.effect': oneOf('NoExecute', 'NoSchedule', 'PreferNoSchedule'),
  'Taint.effect': oneOf('NoExecute', 'NoSchedule', 'PreferNoSchedule'),
  'Probe.timeoutSeconds': byDefault(1),
  'Probe.periodSeconds': byDefault(10),
  'Probe.successThreshold': byDefault(1),
  'Probe.failureThreshold': byDefault(3),
  'HTTPGetAction.scheme': { ...oneOf('HTTP', 'HTTPS'), ...byDefault('HTTP') },

  'Secret.type': byDefault('Opaque'),
  'NamespaceStatus.conditions': mapBy(['type']),
  'NamespaceStatus.phase': oneOf('Active', 'Terminating'),
  'NodeStatus.conditions': mapBy(['type']),
  'NodeStatus.addresses': mapBy(['type']),
  'NodeSpec.podCIDRs': SET,
  'ServiceSpec.ports': mapBy(['port', 'protocol']),
  'ServiceSpec.selector': ATOMIC,
  'ServiceSpec.sessionAffinity': { ...oneOf('ClientIP', 'None'), ...byDefault('None') },
  'ServiceSpec.type': {
    ...oneOf('ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'),
    ...byDefault('ClusterIP'),
  },
  'ServicePort.protocol': { ...PROTOCOL, ...byDefault('TCP') },
  'ServiceStatus.conditions': mapBy(['type']),
  'ServiceAccount.secrets': mapBy(['name']),

  'CustomResourceDefinitionSpec.scope': oneOf('Cluster', 'Namespaced'),
  'CustomResourceDefinitionStatus.conditions': mapBy(['type']),
};

/** Keywords of whole definitions, by short name. */
export const DEFINITION_OVERLAY: Readonly<Record<string, JsonObject>> = Object.fromEntries(
  [
    'LabelSelector',
    'ObjectReference',
    'LocalObjectReference',
    'TypedLocalObjectReference',
    'ConfigMapKeySelector',
    'SecretKeySelector',
    'FileKeySelector',
    'ObjectFieldSelector',
    'ResourceFieldSelector',
    'NodeSelector',
    'NodeSelectorTerm',
    'RoleRef',
    'Subject',
    'OwnerReference',
  ].map((name) => [name, ATOMIC]),
);

/** Maps whose values are resource quantities, which may be written as numbers too. */
export const QUANTITY_MAPS: ReadonlySet<string> = new Set([
  'ResourceRequirements.limits',
  'ResourceRequirements.requests',
  'VolumeResourceRequirements.limits',
  'VolumeResourceRequirements.requests',
  'PodSpec.overhead',
  'NodeStatus.capacity',
  'NodeStatus.allocatable',
  'ContainerStatus.allocatedResources',
]);
