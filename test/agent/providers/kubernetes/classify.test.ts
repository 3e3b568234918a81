import { expect, test } from 'vitest';
import { errorFromResponse, KubeError } from '#agent/kube/errors.ts';
import { ProviderError, type ProviderOp } from '#agent/providers/errors.ts';
import { classify } from '#agent/providers/kubernetes/classify.ts';

const answer = (code: number, reason: string, message = 'why') =>
  errorFromResponse('GET /x', code, JSON.stringify({ code, reason, message }));
const quota =
  'pods "p" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=3, limited: pods=3';

test.each<[string, ProviderOp, unknown, string]>([
  ['404', 'get', answer(404, 'NotFound'), 'NotFound'],
  ['404', 'create', answer(404, 'NotFound'), 'Transient'],
  ['404', 'list', answer(404, 'NotFound'), 'Transient'],
  ['403 by RBAC', 'create', answer(403, 'Forbidden', 'pods is forbidden: no'), 'Permanent'],
  ['403 by quota', 'create', answer(403, 'Forbidden', quota), 'QuotaExceeded'],
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
