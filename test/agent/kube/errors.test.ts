import { expect, test } from 'vitest';
import { errorFromResponse, KubeError, retryWithinMs } from '#agent/kube/errors.ts';

const refusal = (status: number) => errorFromResponse('GET /x', status, '');

test.each([
  ['an API server that is away', new KubeError({ status: 0, reason: 'Unreachable' }, 'x'), 30_000],
  ['one that fails', refusal(500), 30_000],
  ['one that is overloaded', refusal(429), 30_000],
  [
    'a cause deep below',
    new Error('a', { cause: new Error('b', { cause: refusal(503) }) }),
    30_000,
  ],
  ['a refusal that stays', refusal(403), undefined],
  ['anything else', new Error('a bug'), undefined],
  ['no error at all', 'text', undefined],
])('%s is tried again within the time that suits it', (_, error, ms) => {
  expect(retryWithinMs(error)).toBe(ms);
});
