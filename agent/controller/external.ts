/** External proxies exist already: nothing is made, only represented. No finalizer, no provider. */
import type { ReconcileResult } from '#agent/runtime/workers.ts';
import { credentialsOf } from './credentials.ts';
import type { StepDeps } from './deps.ts';
import type { Draft } from './draft.ts';

/** Reads the credentials, if any, and stages address and health. */
export async function reconcileExternal(
  deps: StepDeps,
  draft: Draft,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { endpoint } = draft.proxy.spec;
  // The API server's rules keep this out; an object from before them is not worth a crash.
  if (endpoint === undefined) {
    draft.setProvisioned('False', 'PermanentError', 'spec.endpoint is missing');
    return {};
  }
  draft.setAddress(endpoint.host, endpoint.port);
  if (endpoint.authSecretRef !== undefined) {
    const { namespace } = draft.proxy.metadata;
    const { name } = endpoint.authSecretRef;
    const credentials = credentialsOf(await deps.secrets.get(namespace, name, signal));
    if (credentials === undefined) return withoutCredentials(deps, draft, name);
  }
  const where = `${endpoint.protocol}://${hostPort(endpoint.host, endpoint.port)}`;
  draft.setProvisioned('True', 'ExternalEndpoint', `reached at ${where}`);
  draft.applyHealth(deps.verdicts.verdict(draft.key));
  // Credentials have no watch (kube/secrets.ts), so a rotation is found by looking again.
  return endpoint.authSecretRef === undefined
    ? {}
    : { requeueAfterMs: deps.intervals.secretRefreshMs };
}

function withoutCredentials(deps: StepDeps, draft: Draft, secretName: string): ReconcileResult {
  const problem =
    `Secret "${secretName}" of spec.endpoint.authSecretRef is missing in this namespace ` +
    'or lacks the keys username and password';
  if (draft.setProvisioned('False', 'CredentialsError', problem)) {
    draft.tell({
      type: 'Warning',
      reason: 'CredentialsError',
      action: 'ReadCredentials',
      note: problem,
    });
  }
  draft.setHealthy('Unknown', 'NotProbed', 'not probed without its credentials');
  return { requeueAfterMs: deps.intervals.secretRetryMs };
}

function hostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
