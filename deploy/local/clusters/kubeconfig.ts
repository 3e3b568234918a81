/** Writes kubeconfig files. */
import { stringify } from 'yaml';
import { writeSecretFile } from '../state-dir.ts';

export interface KubeconfigEntry {
  readonly server: string;
  readonly caPem: string;
  readonly token: string;
  /** Name of the user; shown by `kubectl config view`. */
  readonly user: string;
}

/** Writes a file with one context, readable by its owner alone. */
export function writeKubeconfig(path: string, entry: KubeconfigEntry): void {
  writeSecretFile(path, kubeconfigText(entry));
}

export function kubeconfigText({ server, caPem, token, user }: KubeconfigEntry): string {
  const cluster = {
    server,
    'certificate-authority-data': Buffer.from(caPem).toString('base64'),
  };
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'local', cluster }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: 'local', context: { cluster: 'local', user, namespace: 'default' } }],
    'current-context': 'local',
  });
}
