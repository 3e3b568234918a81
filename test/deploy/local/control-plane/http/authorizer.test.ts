import { describe, expect, it } from 'vitest';
import { type Access, ruleAllows } from '#deploy/local/control-plane/http/authorizer.ts';

const resource = (changes: Partial<Extract<Access, { type: 'resource' }>> = {}): Access => ({
  type: 'resource',
  verb: 'get',
  group: 'g.example.com',
  plural: 'things',
  subresource: '',
  namespace: 'n',
  name: 'one',
  ...changes,
});
const path = (value: string): Access => ({ type: 'path', verb: 'get', path: value });
const RULE = { apiGroups: ['g.example.com'], resources: ['things'], verbs: ['get'] };

describe('a rule', () => {
  it.each([
    ['its verb, group and resource', RULE, resource(), true],
    ['another verb', RULE, resource({ verb: 'list' }), false],
    ['another group', RULE, resource({ group: '' }), false],
    ['another resource', RULE, resource({ plural: 'others' }), false],
    ['a subresource it does not name', RULE, resource({ subresource: 'status' }), false],
    [
      'a subresource it names',
      { ...RULE, resources: ['things/status'] },
      resource({ subresource: 'status' }),
      true,
    ],
    ['the resource of a subresource', { ...RULE, resources: ['things/status'] }, resource(), false],
    [
      'a subresource of every resource',
      { ...RULE, resources: ['*/status'] },
      resource({ subresource: 'status' }),
      true,
    ],
    [
      'everything by stars',
      { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
      resource({ subresource: 'status' }),
      true,
    ],
    ['a name it lists', { ...RULE, resourceNames: ['one'] }, resource(), true],
    ['a name it does not list', { ...RULE, resourceNames: ['two'] }, resource(), false],
    [
      'no name where it lists some',
      { ...RULE, resourceNames: ['one'] },
      resource({ name: '' }),
      false,
    ],
    ['a path it does not know', RULE, path('/version'), false],
    ['a path', { nonResourceURLs: ['/version'], verbs: ['get'] }, path('/version'), true],
    ['a path below', { nonResourceURLs: ['/apis/*'], verbs: ['get'] }, path('/apis/g/v1'), true],
    ['a path beside', { nonResourceURLs: ['/apis/*'], verbs: ['get'] }, path('/api'), false],
    ['a path above', { nonResourceURLs: ['/version'], verbs: ['get'] }, path('/version/x'), false],
    ['a resource by paths', { nonResourceURLs: ['*'], verbs: ['*'] }, resource(), false],
    ['nothing when it is empty', {}, resource(), false],
  ])('decides on %s', (_case, rule, access, isAllowed) => {
    expect(ruleAllows(rule, access)).toBe(isAllowed);
  });
});
