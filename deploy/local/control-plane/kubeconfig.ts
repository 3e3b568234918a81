/** The file with which kubectl and clients reach the control plane as one user. */
import { stringify } from 'yaml';

export interface KubeconfigOptions {
  readonly cluster: string;
  readonly server: string;
  readonly caPem: string;
  readonly user: string;
  readonly token: string;
}

/** YAML text of a kubeconfig with one context. It holds a token: keep it with mode 0600. */
export function kubeconfigText(options: KubeconfigOptions): string {
  const { cluster, server, caPem, user, token } = options;
  const context = `${user}@${cluster}`;
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: cluster,
        cluster: {
          server,
          'certificate-authority-data': Buffer.from(caPem).toString('base64'),
        },
      },
    ],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: context, context: { cluster, user } }],
    'current-context': context,
  });
}
