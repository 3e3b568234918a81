import { describe, expect, test } from 'vitest';
import { ProviderError } from '#agent/providers/errors.ts';
import { classify, classOf, saysNotFound } from '#agent/providers/gcp/classify.ts';
import { ComputeError } from '#agent/providers/gcp/compute-api.ts';

const AT = { op: 'create', provider: 'gcp-eu' } as const;
const REF = { zone: 'z-1', name: 'proxy-a' };
const failure = (status: number | undefined, ...reasons: string[]) =>
  new ComputeError('said so', { status, reasons });

describe('a failure of the API', () => {
  test.each<[string, unknown, string]>([
    ['429', failure(429, 'rateLimitExceeded'), 'QuotaExceeded'],
    ['429 without a reason', failure(429), 'QuotaExceeded'],
    ['403 quotaExceeded', failure(403, 'quotaExceeded'), 'QuotaExceeded'],
    ['403 rateLimitExceeded', failure(403, 'rateLimitExceeded'), 'QuotaExceeded'],
    ['403 QUOTA_EXCEEDED', failure(403, 'QUOTA_EXCEEDED'), 'QuotaExceeded'],
    ['503 stock-out', failure(503, 'ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS'), 'QuotaExceeded'],
    ['403 forbidden', failure(403, 'forbidden'), 'Permanent'],
    ['403 accessNotConfigured', failure(403, 'accessNotConfigured'), 'Permanent'],
    ['403 without a reason', failure(403), 'Permanent'],
    ['400', failure(400, 'invalid'), 'Permanent'],
    ['400 resourceNotReady', failure(400, 'resourceNotReady'), 'Transient'],
    [
      '400 resourceInUseByAnotherResource',
      failure(400, 'resourceInUseByAnotherResource'),
      'Transient',
    ],
    ['401', failure(401, 'authError'), 'Permanent'],
    ['404 of the API', failure(404, 'notFound'), 'Permanent'],
    ['404 of something in front of it', failure(404), 'Transient'],
    ['409', failure(409, 'alreadyExists'), 'Transient'],
    ['412', failure(412, 'conditionNotMet'), 'Transient'],
    ['408', failure(408), 'Transient'],
    ['500', failure(500, 'backendError'), 'Transient'],
    ['502', failure(502), 'Transient'],
    ['503', failure(503), 'Transient'],
    ['504', failure(504), 'Transient'],
    ['a status that nobody knows', failure(418), 'Transient'],
    ['no answer', failure(undefined), 'Transient'],
    ['an error that is not of the API', new TypeError('x'), 'Transient'],
    ['something that is no error', 'x', 'Transient'],
  ])('%s is %s', (_what, error, errorClass) => {
    expect(classOf(error)).toBe(errorClass);
    const classed = classify(error, AT);
    expect(classed).toMatchObject({ class: errorClass, ...AT });
    expect(classed.message).toMatch(/^gcp-eu: create: /);
  });

  test('that has a class keeps it', () => {
    const error = new ProviderError('Permanent', AT, 'no');
    expect(classify(error, { op: 'get', provider: 'other' })).toBe(error);
  });

  test('is told in a bounded text', () => {
    const long = new ComputeError('x'.repeat(5_000), { status: 500 });
    expect(classify(long, AT).message.length).toBeLessThan(700);
  });
});

describe('an instance is gone', () => {
  const path = 'projects/p/zones/z-1/instances/proxy-a';
  test.each([
    ['when the API names it', 404, `The resource '${path}' was not found`, true],
    ['not when it names another one', 404, `The resource '${path}b' was not found`, false],
    ['not when it names the project', 404, "The resource 'projects/p' was not found", false],
    ['not when something else answers', 404, 'HTTP 404 without an error of the API', false],
    ['not with another status', 503, `The resource '${path}' was not found`, false],
  ])('%s', (_when, status, message, gone) => {
    expect(saysNotFound(new ComputeError(message, { status }), REF)).toBe(gone);
  });
});
