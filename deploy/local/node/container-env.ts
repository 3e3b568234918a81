/** Environment and arguments of a container, with Kubernetes' references resolved. */
import type { Container, Pod } from './pod.ts';
import { MountError, type ObjectSource } from './volumes.ts';

/** What an image would set. */
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Resolves the variables of a container; throws a `MountError` for a missing reference. */
export async function containerEnv(
  pod: Pod,
  container: Container,
  ip: string,
  source: ObjectSource,
): Promise<Record<string, string>> {
  const env: Record<string, string> = { PATH, HOSTNAME: pod.metadata.name };
  for (const { name, value, valueFrom } of container.env) {
    if (valueFrom === undefined) env[name] = expand(value, env);
    else {
      const resolved = await resolve(pod, valueFrom, ip, source);
      if (resolved !== undefined) env[name] = resolved;
    }
  }
  return env;
}

/** Expands `$(NAME)` by the container's variables; `$$(NAME)` stays `$(NAME)`. */
export function expand(text: string, env: Readonly<Record<string, string>>): string {
  return text.replace(/\$(\$?)\(([A-Za-z_][\w.-]*)\)/g, (all, escaped: string, name: string) =>
    escaped === '$' ? all.slice(1) : (env[name] ?? all),
  );
}

type ValueFrom = NonNullable<Container['env'][number]['valueFrom']>;

async function resolve(
  pod: Pod,
  from: ValueFrom,
  ip: string,
  source: ObjectSource,
): Promise<string | undefined> {
  if (from.fieldRef !== undefined) return fieldValue(pod, from.fieldRef.fieldPath, ip);
  const ref = from.configMapKeyRef ?? from.secretKeyRef;
  if (ref === undefined) throw new MountError('unknown kind of valueFrom');
  const kind = from.configMapKeyRef === undefined ? 'secret' : 'configmap';
  const data = kind === 'secret' ? await source.secret(ref.name) : await source.configMap(ref.name);
  const value = data?.get(ref.key);
  if (value === undefined && !ref.optional) {
    throw new MountError(`${kind} "${ref.name}" with key "${ref.key}" not found`);
  }
  return value?.toString('utf8');
}

function fieldValue(pod: Pod, path: string, ip: string): string {
  const { metadata, spec } = pod;
  const fixed: Readonly<Record<string, string>> = {
    'metadata.name': metadata.name,
    'metadata.namespace': metadata.namespace,
    'metadata.uid': metadata.uid,
    'spec.nodeName': spec.nodeName,
    'status.podIP': ip,
  };
  const keyed = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path);
  const map = keyed?.[1] === 'labels' ? metadata.labels : metadata.annotations;
  const value = fixed[path] ?? (keyed === null ? undefined : (map[keyed[2] ?? ''] ?? ''));
  if (value === undefined) throw new MountError(`fieldPath "${path}" is not known here`);
  return value;
}
