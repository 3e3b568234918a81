/** The control plane of this repository, inside the start process, with its storage on disk. */
import type { Clock } from '#shared/clock.ts';
import { createControlPlane } from '../control-plane/control-plane.ts';
import { tokenAccess } from '../kube/client.ts';
import { podLogFile } from '../node/pod-logs.ts';
import { LOOPBACK } from '../ports.ts';
import { type StateDir, writeSecretFile } from '../state-dir.ts';
import type { Cluster } from './cluster.ts';

/** Starts it on `port` of 127.0.0.1 and writes both kubeconfigs. */
export async function openEmbeddedCluster(
  { clock }: { clock: Clock },
  { port, state }: { port: number; state: StateDir },
): Promise<Cluster> {
  const server = await createControlPlane({
    clock,
    host: LOOPBACK,
    port,
    stateDir: state.controlPlane,
    podLog: (namespace, name) => podLogFile(state.podLogs, namespace, name),
  });
  writeSecretFile(state.kubeconfig, server.kubeconfig('admin'));
  writeSecretFile(state.agentKubeconfig, server.kubeconfig('agent'));
  return {
    access: tokenAccess(server.url, server.caPem, server.adminToken),
    kubeconfig: state.kubeconfig,
    agentKubeconfig: state.agentKubeconfig,
    needsNode: true,
    close: () => server.close(),
  };
}
