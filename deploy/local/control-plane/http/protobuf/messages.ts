/**
 * The messages that kubectl sends as protocol buffers: what its `create` commands and `auth` write
 * with generated clients. Everything else comes as JSON. Numbers are those of the published
 * `generated.proto` files and never change.
 */

/** How one field is written. Maps are repeated entries of key 1 and value 2. */
export type FieldKind =
  | 'string'
  | 'strings'
  | 'bool'
  | 'int'
  | 'time'
  | 'stringMap'
  | 'bytesMap'
  | { readonly message: Message }
  | { readonly messages: Message };

export interface Field {
  readonly name: string;
  readonly kind: FieldKind;
}

/** Fields by number. */
export type Message = Readonly<Record<number, Field>>;

const string = (name: string): Field => ({ name, kind: 'string' });
const strings = (name: string): Field => ({ name, kind: 'strings' });
const bool = (name: string): Field => ({ name, kind: 'bool' });
const int = (name: string): Field => ({ name, kind: 'int' });
const one = (name: string, message: Message): Field => ({ name, kind: { message } });
const many = (name: string, messages: Message): Field => ({ name, kind: { messages } });

const ownerReference: Message = {
  1: string('kind'),
  3: string('name'),
  4: string('uid'),
  5: string('apiVersion'),
  6: bool('controller'),
  7: bool('blockOwnerDeletion'),
};

const objectMeta: Message = {
  1: string('name'),
  2: string('generateName'),
  3: string('namespace'),
  5: string('uid'),
  6: string('resourceVersion'),
  7: int('generation'),
  8: { name: 'creationTimestamp', kind: 'time' },
  9: { name: 'deletionTimestamp', kind: 'time' },
  10: int('deletionGracePeriodSeconds'),
  11: { name: 'labels', kind: 'stringMap' },
  12: { name: 'annotations', kind: 'stringMap' },
  13: many('ownerReferences', ownerReference),
  14: strings('finalizers'),
};

const metadata = one('metadata', objectMeta);

const objectReference: Message = {
  1: string('kind'),
  2: string('namespace'),
  3: string('name'),
  4: string('uid'),
  5: string('apiVersion'),
  6: string('resourceVersion'),
  7: string('fieldPath'),
};

const policyRule: Message = {
  1: strings('verbs'),
  2: strings('apiGroups'),
  3: strings('resources'),
  4: strings('resourceNames'),
  5: strings('nonResourceURLs'),
};

const subject: Message = {
  1: string('kind'),
  2: string('apiGroup'),
  3: string('name'),
  4: string('namespace'),
};

const roleRef: Message = { 1: string('apiGroup'), 2: string('kind'), 3: string('name') };
const role: Message = { 1: metadata, 2: many('rules', policyRule) };
const roleBinding: Message = {
  1: metadata,
  2: many('subjects', subject),
  3: one('roleRef', roleRef),
};

const resourceAttributes: Message = {
  1: string('namespace'),
  2: string('verb'),
  3: string('group'),
  4: string('version'),
  5: string('resource'),
  6: string('subresource'),
  7: string('name'),
};

const accessReviewSpec: Message = {
  1: one('resourceAttributes', resourceAttributes),
  2: one('nonResourceAttributes', { 1: string('path'), 2: string('verb') }),
};

const deleteOptions: Message = {
  1: int('gracePeriodSeconds'),
  2: one('preconditions', { 1: string('uid'), 2: string('resourceVersion') }),
  3: bool('orphanDependents'),
  4: string('propagationPolicy'),
  5: strings('dryRun'),
};

const MESSAGES: Readonly<Record<string, Message>> = {
  'v1 Namespace': {
    1: metadata,
    2: one('spec', { 1: strings('finalizers') }),
    3: one('status', { 1: string('phase') }),
  },
  'v1 Secret': {
    1: metadata,
    2: { name: 'data', kind: 'bytesMap' },
    3: string('type'),
    4: { name: 'stringData', kind: 'stringMap' },
    5: bool('immutable'),
  },
  'v1 ConfigMap': {
    1: metadata,
    2: { name: 'data', kind: 'stringMap' },
    3: { name: 'binaryData', kind: 'bytesMap' },
    4: bool('immutable'),
  },
  'v1 ServiceAccount': {
    1: metadata,
    2: many('secrets', objectReference),
    3: many('imagePullSecrets', { 1: string('name') }),
    4: bool('automountServiceAccountToken'),
  },
  'v1 DeleteOptions': deleteOptions,
  'meta.k8s.io/v1 DeleteOptions': deleteOptions,
  'rbac.authorization.k8s.io/v1 Role': role,
  'rbac.authorization.k8s.io/v1 ClusterRole': role,
  'rbac.authorization.k8s.io/v1 RoleBinding': roleBinding,
  'rbac.authorization.k8s.io/v1 ClusterRoleBinding': roleBinding,
  'authentication.k8s.io/v1 SelfSubjectReview': { 1: metadata },
  'authorization.k8s.io/v1 SelfSubjectAccessReview': {
    1: metadata,
    2: one('spec', accessReviewSpec),
  },
  'authorization.k8s.io/v1 SelfSubjectRulesReview': {
    1: metadata,
    2: one('spec', { 1: string('namespace') }),
  },
  'authorization.k8s.io/v1 SubjectAccessReview': {
    1: metadata,
    2: one('spec', { ...accessReviewSpec, 3: string('user'), 4: strings('groups') }),
  },
};

/** The message of a kind; undefined for kinds that are taken as JSON only. */
export function messageOf(apiVersion: string, kind: string): Message | undefined {
  const key = `${apiVersion} ${kind}`;
  return Object.hasOwn(MESSAGES, key) ? MESSAGES[key] : undefined;
}
