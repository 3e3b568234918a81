/** A control plane that the stack can use: embedded, a real API server, or somebody's cluster. */
import type { KubeAccess } from '../kube/client.ts';

export interface Cluster {
  /** How the stack itself gets in, as an administrator. */
  readonly access: KubeAccess;
  /** File for the person to use with kubectl. */
  readonly kubeconfig: string;
  /** File for the agent. */
  readonly agentKubeconfig: string;
  /** Whether its pods are run by the local node; a real cluster has nodes of its own. */
  readonly needsNode: boolean;
  close(): Promise<void>;
}
