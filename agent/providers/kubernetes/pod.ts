/** The pod of one proxy and the ConfigMap with its configuration. Pure. */
import type { V1ConfigMap, V1Pod, V1PodSpec } from '@kubernetes/client-node';
import { PROXY_ANNOTATION } from '#shared/crd/names.ts';
import type { KubernetesBlock } from '../config-kubernetes.ts';
import { markLabels } from '../mark.ts';
import type { CreateRequest } from '../provider.ts';
import { squidConfig } from './squid-config.ts';

/** A folder of its own: nothing of the image is hidden by it. */
const CONFIG_FOLDER = '/etc/egress';
const CONFIG_FILE = 'squid.conf';
/** What Squid may write to, though it is told to write nothing. */
const WRITABLE = { run: '/run', logs: '/var/log/squid', spool: '/var/spool/squid' } as const;
const WRITABLE_SIZE_LIMIT = '16Mi';
/** Ports below this one need a privilege, unless the pod's network says otherwise. */
const UNPRIVILEGED_PORT_MIN = 1024;

function labelsOf(request: CreateRequest): Record<string, string> {
  return {
    'app.kubernetes.io/name': 'egress-proxy',
    'app.kubernetes.io/managed-by': 'egress-agent',
    ...markLabels(request),
  };
}

/** Annotations take any text, which a Proxy's name of up to 253 characters may need. */
function annotationsOf(request: CreateRequest): Record<string, string> {
  return { [PROXY_ANNOTATION]: request.proxyName };
}

/**
 * The pod. It has the least rights that Squid runs with, which is Kubernetes' `restricted`
 * profile, and never restarts: a Squid that ended is replaced together with its pod.
 */
export function buildPod(request: CreateRequest, block: KubernetesBlock): V1Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: request.name,
      namespace: request.namespace,
      labels: labelsOf(request),
      annotations: annotationsOf(request),
    },
    spec: buildSpec(request, block),
  };
}

function buildSpec(request: CreateRequest, block: KubernetesBlock): V1PodSpec {
  return {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: block.terminationGracePeriodSeconds,
    nodeSelector: block.nodeSelector,
    tolerations: block.tolerations.map(withoutUndefined),
    imagePullSecrets: block.imagePullSecrets.map((name) => ({ name })),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: block.runAsUser,
      runAsGroup: block.runAsGroup,
      fsGroup: block.runAsGroup,
      seccompProfile: { type: 'RuntimeDefault' },
      ...(request.port < UNPRIVILEGED_PORT_MIN
        ? { sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }] }
        : {}),
    },
    containers: [buildContainer(request.port, block)],
    volumes: [
      { name: 'config', configMap: { name: request.name } },
      ...Object.keys(WRITABLE).map((name) => ({
        name,
        emptyDir: { sizeLimit: WRITABLE_SIZE_LIMIT },
      })),
    ],
  };
}

function buildContainer(port: number, block: KubernetesBlock): V1PodSpec['containers'][number] {
  const listens = { tcpSocket: { port } };
  return {
    name: 'squid',
    image: block.image,
    imagePullPolicy: block.imagePullPolicy,
    // In the foreground, as one process, without the image's shell script around it.
    command: ['squid', '-N', '-f', `${CONFIG_FOLDER}/${CONFIG_FILE}`],
    ports: [{ name: 'proxy', containerPort: port, protocol: 'TCP' }],
    resources: {
      requests: withoutUndefined(block.resources.requests),
      limits: withoutUndefined(block.resources.limits),
    },
    readinessProbe: { ...listens, periodSeconds: 2, timeoutSeconds: 1, failureThreshold: 3 },
    livenessProbe: {
      ...listens,
      initialDelaySeconds: 10,
      periodSeconds: 10,
      timeoutSeconds: 2,
      failureThreshold: 3,
    },
    securityContext: {
      runAsNonRoot: true,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    },
    volumeMounts: [
      { name: 'config', mountPath: CONFIG_FOLDER, readOnly: true },
      ...Object.entries(WRITABLE).map(([name, mountPath]) => ({ name, mountPath })),
    ],
  };
}

/** The configuration, owned by the pod `podUid`: the cluster removes it together with the pod. */
export function buildConfigMap(
  request: CreateRequest,
  block: KubernetesBlock,
  podUid: string,
): V1ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: request.name,
      namespace: request.namespace,
      labels: labelsOf(request),
      annotations: annotationsOf(request),
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: request.name, uid: podUid }],
    },
    immutable: true,
    data: { [CONFIG_FILE]: squidConfig(request.port, request.name, block) },
  };
}

/** Optional fields as JSON has them: absent. */
function withoutUndefined<T extends Record<string, unknown>>(
  object: T,
): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  const present = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as { [Key in keyof T]: Exclude<T[Key], undefined> };
}
