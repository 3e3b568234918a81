/** Questions that are asked by creating an object: may I do this, what may I do, who am I. */
import { objectAt, stringAt } from '../api/object-meta.ts';
import { type JsonObject, strings } from '../json.ts';
import type { Access, Authorizer } from './authorizer.ts';
import type { User } from './users.ts';

export interface Review {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  /** The status of the answer. */
  answer(user: User, spec: JsonObject, authorizer: Authorizer): JsonObject;
}

const AUTHORIZATION = { group: 'authorization.k8s.io', version: 'v1' };

export const REVIEWS: readonly Review[] = [
  {
    group: 'authentication.k8s.io',
    version: 'v1',
    kind: 'SelfSubjectReview',
    plural: 'selfsubjectreviews',
    singular: 'selfsubjectreview',
    answer: ({ name, groups }) => ({ userInfo: { username: name, groups: [...groups] } }),
  },
  {
    ...AUTHORIZATION,
    kind: 'SelfSubjectAccessReview',
    plural: 'selfsubjectaccessreviews',
    singular: 'selfsubjectaccessreview',
    answer: (user, spec, authorizer) => decision(user, spec, authorizer),
  },
  {
    ...AUTHORIZATION,
    kind: 'SubjectAccessReview',
    plural: 'subjectaccessreviews',
    singular: 'subjectaccessreview',
    answer: (_user, spec, authorizer) =>
      decision({ name: stringAt(spec, 'user'), groups: strings(spec.groups) }, spec, authorizer),
  },
  {
    ...AUTHORIZATION,
    kind: 'SelfSubjectRulesReview',
    plural: 'selfsubjectrulesreviews',
    singular: 'selfsubjectrulesreview',
    answer: (user, spec, authorizer) => {
      const rules = authorizer.rules(user, stringAt(spec, 'namespace'));
      return {
        resourceRules: rules
          .filter((rule) => strings(rule.resources).length > 0)
          .map(({ nonResourceURLs: _apart, ...rule }) => rule),
        nonResourceRules: rules
          .filter((rule) => strings(rule.nonResourceURLs).length > 0)
          .map((rule) => ({
            verbs: strings(rule.verbs),
            nonResourceURLs: strings(rule.nonResourceURLs),
          })),
        incomplete: false,
      };
    },
  },
];

export function findReview(group: string, version: string, plural: string): Review | undefined {
  return REVIEWS.find(
    (review) => review.group === group && review.version === version && review.plural === plural,
  );
}

/** The review as it was asked, with its answer. */
export function answerReview(
  review: Review,
  user: User,
  body: JsonObject,
  authorizer: Authorizer,
): JsonObject {
  return {
    ...body,
    kind: review.kind,
    apiVersion: `${review.group}/${review.version}`,
    metadata: { creationTimestamp: null },
    status: review.answer(user, objectAt(body, 'spec'), authorizer),
  };
}

function decision(user: User, spec: JsonObject, authorizer: Authorizer): JsonObject {
  const allowed = authorizer.allows(user, accessOf(spec));
  return {
    allowed,
    ...(allowed && { reason: 'RBAC: allowed by a role that is bound to the user' }),
  };
}

function accessOf(spec: JsonObject): Access {
  const resource = objectAt(spec, 'resourceAttributes');
  if (Object.keys(resource).length === 0) {
    const path = objectAt(spec, 'nonResourceAttributes');
    return { type: 'path', verb: stringAt(path, 'verb'), path: stringAt(path, 'path') };
  }
  return {
    type: 'resource',
    verb: stringAt(resource, 'verb'),
    group: stringAt(resource, 'group'),
    plural: stringAt(resource, 'resource'),
    subresource: stringAt(resource, 'subresource'),
    namespace: stringAt(resource, 'namespace'),
    name: stringAt(resource, 'name'),
  };
}
