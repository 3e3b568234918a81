/** The control plane of this repository, inside the start process, with its storage on disk. */
import type { Clock } from '#shared/clock.ts';
import { createControlPlane } from '../control-plane/control-plane.ts';
import { tokenAccess } from '../kube/client.ts';
import { LOOPBACK } from '../ports.ts';
import type { StateDir } from '../state-dir.ts';
import type { Cluster } from './cluster.ts';
import { writeKubeconfig } from './kubeconfig.ts';

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
  });
  const { url, caPem, adminToken, agentToken } = server;
  const entry = { server: url, caPem };
  writeKubeconfig(state.kubeconfig, { ...entry, token: adminToken, user: 'admin' });
  writeKubeconfig(state.agentKubeconfig, { ...entry, token: agentToken, user: 'agent' });
  return {
    access: tokenAccess(url, caPem, adminToken),
    kubeconfig: state.kubeconfig,
    agentKubeconfig: state.agentKubeconfig,
    needsNode: true,
    close: () => server.close(),
  };
}
