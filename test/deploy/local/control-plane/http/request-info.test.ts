import { describe, expect, it } from 'vitest';
import { requestInfo } from '#deploy/local/control-plane/http/request-info.ts';

const info = (method: string, path: string) =>
  requestInfo(method, new URL(path, 'https://localhost'));

describe('what a request is about', () => {
  it.each([
    ['GET', '/api/v1/pods', 'list  v1 pods   '],
    ['GET', '/api/v1/pods?watch=true', 'watch  v1 pods   '],
    ['GET', '/api/v1/pods?watch=false', 'list  v1 pods   '],
    ['GET', '/api/v1/namespaces', 'list  v1 namespaces   '],
    ['GET', '/api/v1/namespaces/n', 'get  v1 namespaces n n '],
    ['PUT', '/api/v1/namespaces/n/status', 'update  v1 namespaces n n status'],
    ['GET', '/api/v1/namespaces/n/pods', 'list  v1 pods n  '],
    ['GET', '/api/v1/namespaces/n/pods/p/log', 'get  v1 pods n p log'],
    ['POST', '/apis/g/v1/namespaces/n/things', 'create g v1 things n  '],
    ['PATCH', '/apis/g/v1/namespaces/n/things/t/status', 'patch g v1 things n t status'],
    ['DELETE', '/apis/g/v1/things/t', 'delete g v1 things  t '],
    ['DELETE', '/apis/g/v1/things', 'deletecollection g v1 things   '],
    ['GET', '/apis/g/v1/things?fieldSelector=metadata.name%3Dt', 'list g v1 things  t '],
    ['GET', '/apis/g/v1/things?fieldSelector=metadata.name!%3Dt', 'list g v1 things   '],
  ])('%s %s', (method, path, expected) => {
    const found = info(method, path);
    if (found?.type !== 'resource') throw new Error('is no request on a resource');
    const { verb, group, version, plural, namespace, name, subresource } = found;
    expect([verb, group, version, plural, namespace, name, subresource].join(' ')).toBe(expected);
  });

  it.each(['/', '/healthz', '/api', '/api/v1', '/apis/g/v1', '/apis/g/v1/namespaces/n/t/x/y/z'])(
    'is no resource for %s',
    (path) => {
      expect(info('GET', path)).toMatchObject({ type: 'path', verb: 'get', path });
    },
  );

  it('is unknown for a path that is not well-formed', () => {
    expect(info('GET', '/api/v1/pods/%ff')).toBeUndefined();
  });
});
