import { describe, expect, test } from 'vitest';
import { isQuotaCode, makesOrRemoves, outcomeOf } from '#agent/providers/gcp/operation.ts';
import { operationSchema } from '#agent/providers/gcp/resources.ts';

const operation = (fields: object) => operationSchema.parse({ name: 'op-1', ...fields });
const done = (code: string, httpErrorStatusCode = 0) =>
  operation({
    status: 'DONE',
    httpErrorStatusCode,
    endTime: '2026-01-01T00:00:10+00:00',
    error: { errors: code === '' ? [] : [{ code, message: 'so it is' }] },
  });

describe('the outcome of an operation', () => {
  test.each(['PENDING', 'RUNNING', ''])('is open while it is %j', (status) => {
    expect(outcomeOf(operation({ status }))).toEqual({ kind: 'running' });
  });

  test('is success when it is done without errors', () => {
    expect(outcomeOf(done(''))).toEqual({ kind: 'succeeded' });
    expect(outcomeOf(operation({ status: 'DONE', error: null }))).toEqual({ kind: 'succeeded' });
  });

  test.each([
    ['QUOTA_EXCEEDED', 403, 'QuotaExceeded'],
    ['QUOTA_EXCEEDED_WITH_DETAILS', 403, 'QuotaExceeded'],
    ['ZONE_RESOURCE_POOL_EXHAUSTED', 503, 'QuotaExceeded'],
    ['ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS', 503, 'QuotaExceeded'],
    ['RESOURCE_POOL_EXHAUSTED', 503, 'QuotaExceeded'],
    ['STOCKOUT', 503, 'QuotaExceeded'],
    ['IP_SPACE_EXHAUSTED_WITH_DETAILS', 400, 'QuotaExceeded'],
    ['RATE_LIMIT_EXCEEDED', 403, 'QuotaExceeded'],
    ['RESOURCE_OPERATION_RATE_EXCEEDED', 403, 'QuotaExceeded'],
    ['RESOURCE_NOT_FOUND', 404, 'Permanent'],
    ['INVALID_USAGE', 400, 'Permanent'],
    ['PERMISSIONS_ERROR', 403, 'Permanent'],
    ['CONDITION_NOT_MET', 412, 'Permanent'],
    ['RESOURCE_NOT_READY', 400, 'Transient'],
    ['RESOURCE_IN_USE_BY_ANOTHER_RESOURCE', 400, 'Transient'],
    ['INTERNAL_ERROR', 500, 'Transient'],
    ['A_CODE_THAT_NOBODY_KNOWS', 400, 'Permanent'],
    ['A_CODE_THAT_NOBODY_KNOWS', 503, 'Transient'],
    ['A_CODE_THAT_NOBODY_KNOWS', 0, 'Transient'],
    ['', 429, 'QuotaExceeded'],
    ['', 500, 'Transient'],
  ])('%s with status %i is %s', (code, status, errorClass) => {
    expect(outcomeOf(done(code, status))).toEqual({
      kind: 'failed',
      class: errorClass,
      reason: code === '' ? `HTTP ${status}` : `${code}: so it is`,
      endedAtMs: Date.parse('2026-01-01T00:00:10Z'),
    });
  });

  test('with several errors is a wait as soon as one of them is quota', () => {
    const errors = [
      { code: 'RESOURCE_NOT_FOUND', message: 'a' },
      { code: 'QUOTA_EXCEEDED', message: 'b' },
    ];
    expect(outcomeOf(operation({ status: 'DONE', error: { errors } }))).toMatchObject({
      class: 'QuotaExceeded',
      reason: 'RESOURCE_NOT_FOUND: a; QUOTA_EXCEEDED: b',
      endedAtMs: 0,
    });
  });
});

test('codes of quota are told with and without details, and not by their beginning', () => {
  expect(isQuotaCode('QUOTA_EXCEEDED_WITH_DETAILS')).toBe(true);
  expect(isQuotaCode('QUOTA_EXCEEDED_ELSEWHERE')).toBe(false);
});

test.each([
  ['insert', 'https://www.googleapis.com/compute/v1/projects/p/zones/z/instances/a', true],
  ['delete', 'https://compute.googleapis.com/compute/v1/projects/p/zones/z/instances/a', true],
  ['setLabels', 'https://www.googleapis.com/compute/v1/projects/p/zones/z/instances/a', false],
  ['insert', 'https://www.googleapis.com/compute/v1/projects/p/zones/z/instances/ab', false],
])('an operation %s of %s makes or removes instance a: %s', (operationType, targetLink, does) => {
  expect(makesOrRemoves('a', operation({ operationType, targetLink }))).toBe(does);
});
