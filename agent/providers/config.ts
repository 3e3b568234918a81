/**
 * `providers.yaml` (contract §4): a list of named provider instances. It is read strictly, and all
 * faults are reported at once, each with its YAML path.
 */
import { parseDocument } from 'yaml';
import { z } from 'zod';
import { gcpBlockSchema } from './config-gcp.ts';
import { kubernetesBlockSchema } from './config-kubernetes.ts';
import { kvmBlockSchema } from './config-kvm.ts';

/** Names are used in Proxy specs, metric labels and ProviderHealth objects. */
const PROVIDER_NAME_PATTERN = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const PROVIDERS_MAX = 100;
const PROBLEMS_MAX = 50;
/** Pods are cheap and quickly made; a runaway is stopped all the same. */
const PODS_PER_MINUTE = 600;
/** Each boots on a host that has other guests to serve. */
const DOMAINS_PER_MINUTE = 30;
/** Each costs money, and a project's API takes some thousand calls a minute. */
const INSTANCES_PER_MINUTE = 60;
const CREATIONS_PER_MINUTE_MAX = 100_000;

const nameSchema = z.string().regex(PROVIDER_NAME_PATTERN, {
  message: 'must be lower-case letters, digits, "-" and ".", at most 253 characters',
});

/** Instances that are begun within a minute, at most. */
function creationsSchema(perMinute: number) {
  return z.number().int().min(1).max(CREATIONS_PER_MINUTE_MAX).default(perMinute);
}

/** Each type and the schema of the one block that it takes, which has the name of the type. */
const kubernetesProviderSchema = z.strictObject({
  name: nameSchema,
  type: z.literal('kubernetes'),
  creationsPerMinute: creationsSchema(PODS_PER_MINUTE),
  kubernetes: kubernetesBlockSchema,
});
const gcpProviderSchema = z.strictObject({
  name: nameSchema,
  type: z.literal('gcp'),
  creationsPerMinute: creationsSchema(INSTANCES_PER_MINUTE),
  gcp: gcpBlockSchema,
});
const kvmProviderSchema = z.strictObject({
  name: nameSchema,
  type: z.literal('kvm'),
  creationsPerMinute: creationsSchema(DOMAINS_PER_MINUTE),
  kvm: kvmBlockSchema,
});
const SCHEMAS = {
  kubernetes: kubernetesProviderSchema,
  gcp: gcpProviderSchema,
  kvm: kvmProviderSchema,
} as const;

export type KubernetesProviderConfig = z.infer<typeof kubernetesProviderSchema>;
export type GcpProviderConfig = z.infer<typeof gcpProviderSchema>;
export type KvmProviderConfig = z.infer<typeof kvmProviderSchema>;
export type ProviderConfig = KubernetesProviderConfig | GcpProviderConfig | KvmProviderConfig;
export type ProviderType = keyof typeof SCHEMAS;

export type ProvidersConfigResult =
  | { readonly ok: true; readonly providers: ProviderConfig[] }
  | { readonly ok: false; readonly problems: string[] };

const fileSchema = z.strictObject({ providers: z.array(z.unknown()).min(1).max(PROVIDERS_MAX) });
const typedSchema = z.object({ type: z.string() });

/** Parses the text of a providers file; `problems` has one line for each fault. */
export function parseProvidersConfig(text: string): ProvidersConfigResult {
  const document = parseDocument(text, { prettyErrors: true, uniqueKeys: true });
  if (document.errors.length > 0) {
    return faults(document.errors.map((error) => firstLine(error.message)));
  }
  const file = fileSchema.safeParse(document.toJS({ maxAliasCount: 100 }) ?? {});
  if (!file.success) return faults(issueLines(file.error.issues, ''));
  const problems: string[] = [];
  const providers: ProviderConfig[] = [];
  for (const [index, entry] of file.data.providers.entries()) {
    const parsed = parseEntry(entry, `providers[${index}]`);
    if ('problems' in parsed) problems.push(...parsed.problems);
    else providers.push(parsed.provider);
  }
  problems.push(...duplicateNames(file.data.providers));
  return problems.length > 0 ? faults(problems) : { ok: true, providers };
}

function parseEntry(
  entry: unknown,
  path: string,
): { provider: ProviderConfig } | { problems: string[] } {
  const typed = typedSchema.safeParse(entry);
  if (!typed.success) return { problems: issueLines(typed.error.issues, path) };
  const { type } = typed.data;
  if (!isKnownType(type)) {
    const known = Object.keys(SCHEMAS).join(', ');
    return { problems: [`${path}.type: unknown type "${type}" (known: ${known})`] };
  }
  const parsed = SCHEMAS[type].safeParse(entry);
  if (parsed.success) return { provider: parsed.data };
  return { problems: issueLines(parsed.error.issues, path) };
}

function isKnownType(type: string): type is ProviderType {
  return Object.hasOwn(SCHEMAS, type);
}

function duplicateNames(entries: readonly unknown[]): string[] {
  const first = new Map<string, number>();
  const problems: string[] = [];
  for (const [index, entry] of entries.entries()) {
    const named = z.object({ name: z.string() }).safeParse(entry);
    if (!named.success) continue;
    const earlier = first.get(named.data.name);
    if (earlier === undefined) first.set(named.data.name, index);
    else {
      const where = `providers[${index}].name`;
      problems.push(`${where}: "${named.data.name}" is already providers[${earlier}]`);
    }
  }
  return problems;
}

function issueLines(issues: readonly z.core.$ZodIssue[], base: string): string[] {
  return issues.flatMap((issue) => {
    const path = yamlPath(base, issue.path);
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => `${yamlPath(path, [key])}: unknown key`);
    }
    if (issue.code === 'invalid_type' && issue.input === undefined) {
      return [`${path || 'file'}: is required`];
    }
    return [`${path || 'file'}: ${issue.message}`];
  });
}

function yamlPath(base: string, path: readonly PropertyKey[]): string {
  let text = base;
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += text === '' ? String(part) : `.${String(part)}`;
  }
  return text;
}

/** The rest of a YAML error is an excerpt of the file; the colon before it goes with it. */
function firstLine(text: string): string {
  return (text.split('\n', 1)[0] ?? text).replace(/:$/, '');
}

function faults(problems: string[]): ProvidersConfigResult {
  return { ok: false, problems: problems.slice(0, PROBLEMS_MAX) };
}
