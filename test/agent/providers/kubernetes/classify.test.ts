import { expect, test } from 'vitest';
import { errorFromResponse, KubeError } from '#agent/kube/errors.ts';
import { ProviderError, type ProviderOp } from '#agent/providers/errors.ts';
import { classify } from '#agent/providers/kubernetes/classify.ts';

const answer = (code: number, reason: string, message = 'why') =>
  errorFromResponse('GET /x', code, JSON.stringify({ code, reason, message }));
const quota =
  'pods "p" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=3, limited: pods=3';

const rbac =
  'pods is forbidden: User "exceeded quota: x" cannot create resource "pods" in API group ""';
const failedQuota = 'pods "p" is forbidden: failed quota: q: must specify limits.cpu for: squid';
const noStatus = 'pods "p" is forbidden: status unknown for quota: q, resources: pods';
const noAccount =
  'pods "p" is forbidden: error looking up service account a/default: serviceaccount "default" not found';
const ending =
  'pods "p" is forbidden: unable to create new content in namespace a because it is being terminated';
const gone = 'pods "p" not found';

test.each<[string, ProviderOp, unknown, string]>([
  ['404', 'get', answer(404, 'NotFound', gone), 'NotFound'],
  ['404', 'create', answer(404, 'NotFound', gone), 'Transient'],
  ['404', 'list', answer(404, 'NotFound', gone), 'Transient'],
  ['404 of a proxy', 'get', errorFromResponse('GET /x', 404, '404 page not found'), 'Transient'],
  ['404 without a name', 'get', answer(404, 'NotFound', 'not found'), 'Transient'],
  ['403 by RBAC', 'create', answer(403, 'Forbidden', 'pods is forbidden: no'), 'Permanent'],
  ['403 by quota', 'create', answer(403, 'Forbidden', quota), 'QuotaExceeded'],
  ['403 by a quota in a name', 'create', answer(403, 'Forbidden', rbac), 'Permanent'],
  ['403 by a quota without limits', 'create', answer(403, 'Forbidden', failedQuota), 'Permanent'],
  ['403 in a new namespace', 'create', answer(403, 'Forbidden', noAccount), 'Transient'],
  ['403 by a new quota', 'create', answer(403, 'Forbidden', noStatus), 'Transient'],
  ['403 in an ending namespace', 'create', answer(403, 'Forbidden', ending), 'Transient'],
  ['408', 'get', answer(408, 'Timeout'), 'Transient'],
  ['413', 'create', answer(413, 'RequestEntityTooLarge'), 'Permanent'],
  ['400', 'create', answer(400, 'BadRequest'), 'Permanent'],
  ['401', 'get', answer(401, 'Unauthorized'), 'Permanent'],
  ['405', 'get', answer(405, 'MethodNotAllowed'), 'Permanent'],
  ['422', 'create', answer(422, 'Invalid'), 'Permanent'],
  ['409', 'delete', answer(409, 'Conflict'), 'Transient'],
  ['429', 'get', answer(429, 'TooManyRequests'), 'Transient'],
  ['500', 'get', answer(500, 'InternalError'), 'Transient'],
  ['503', 'get', answer(503, 'ServiceUnavailable'), 'Transient'],
  ['504', 'get', answer(504, 'Timeout'), 'Transient'],
  ['no answer', 'get', new KubeError({ status: 0, reason: 'Unreachable' }, 'x'), 'Transient'],
  [
    'an answer that is no JSON',
    'get',
    new KubeError({ status: 200, reason: 'Other' }, 'x'),
    'Transient',
  ],
  ['not an API error', 'get', new TypeError('x'), 'Transient'],
  ['not an error', 'get', 'x', 'Transient'],
])('%s to %s', (_what, op, error, errorClass) => {
  const classified = classify(error, { op, provider: 'eu' });
  expect(classified).toMatchObject({ class: errorClass, op, provider: 'eu', cause: error });
  expect(classified.message).toMatch(new RegExp(`^eu: ${op}: `));
});

test('what is classified already is passed through', () => {
  const error = new ProviderError('Permanent', { op: 'get', provider: 'eu' }, 'x');
  expect(classify(error, { op: 'list', provider: 'other' })).toBe(error);
});
