import { describe, expect, test } from 'vitest';
import { credentialsOf } from '#agent/controller/credentials.ts';
import { KEY, proxyWith, World } from './harness.ts';

const endpoint = { host: 'proxy.example.net', port: 8080, protocol: 'http' };
const external = (more: object = {}) =>
  proxyWith({ mode: 'External', endpoint: { ...endpoint, ...more } });

describe('an external proxy', () => {
  test('is represented without finalizer and without any provider', async () => {
    const world = new World(external());
    world.providers = {};
    expect(await world.pass()).toEqual({});
    expect(world.status).toMatchObject({ ip: 'proxy.example.net', port: 8080, phase: 'Pending' });
    expect(world.condition('Provisioned')).toBe('True/ExternalEndpoint');
    world.healthy();
    await world.pass();
    expect(world.status.phase).toBe('Ready');
    expect(world.writes).toEqual(['patchStatus', 'patchStatus']);
    world.delete();
    expect(world.proxy).toBeUndefined();
  });

  test('that is unhealthy says why, and keeps its last known egress address', async () => {
    const world = new World(external());
    world.healthy();
    await world.pass();
    const verdict = { healthy: false, reason: 'ProxyAuthFailed', message: 'no', probedAtMs: 5 };
    world.verdicts.set(KEY, verdict);
    await world.pass();
    expect(world.status).toMatchObject({ phase: 'Unhealthy', egressIP: '198.51.100.7' });
    expect(world.condition('Ready')).toBe('False/ProxyAuthFailed');
  });

  test('keeps the word of an earlier leader until its engine has one of its own', async () => {
    const world = new World(external());
    world.healthy();
    await world.pass();
    world.verdicts.clear();
    world.restart();
    await world.pass();
    expect(world.status.phase).toBe('Ready');
    const unknown = { healthy: null, reason: 'NotProbed', message: '', probedAtMs: 0 };
    world.verdicts.set(KEY, unknown);
    await world.pass();
    expect(world.condition('Healthy')).toBe('Unknown/NotProbed');
  });

  test('forgets what was known of another address', async () => {
    const world = new World(external());
    world.healthy();
    await world.pass();
    world.verdicts.clear();
    world.edit({ endpoint: { ...endpoint, port: 9090 } });
    await world.pass();
    expect(world.status).toMatchObject({ port: 9090, phase: 'Pending' });
    expect(world.status.egressIP).toBeUndefined();
    expect(world.status.latencyMillis).toBeUndefined();
  });

  test.each([
    ['is missing', undefined],
    ['lacks the password', { data: { username: 'u' } }],
    ['has an empty user name', { data: { username: '', password: 'p' } }],
  ])('whose Secret %s waits for it and says so once', async (_what, secret) => {
    const world = new World(external({ authSecretRef: { name: 'auth' } }));
    if (secret !== undefined) world.secrets.set('crawl/auth', secret);
    expect(await world.pass()).toEqual({ requeueAfterMs: 5000 });
    await world.pass();
    expect(world.condition('Provisioned')).toBe('False/CredentialsError');
    expect(world.eventReasons).toEqual(['CredentialsError']);
    world.secrets.set('crawl/auth', { data: { username: 'u', password: 'hidden' } });
    expect(await world.pass()).toEqual({ requeueAfterMs: 60_000 });
    expect(world.condition('Provisioned')).toBe('True/ExternalEndpoint');
    expect(JSON.stringify([world.proxy, world.events])).not.toContain('hidden');
  });
});

test('a conflicting write is decided again, a deleted object forgotten', async () => {
  const world = new World(external());
  world.around = async (_what, call) => {
    world.around = (_next, again) => again();
    world.edit({ maxLeases: 2 });
    return call();
  };
  expect(await world.pass()).toEqual({ requeueAfterMs: 1000 });
  await world.pass();
  expect(world.status.observedGeneration).toBe(2);
  world.edit({ maxLeases: 3 });
  world.around = async (_what, call) => {
    world.proxy = undefined;
    return call();
  };
  expect(await world.pass()).toEqual({});
});

test('credentials lose the newline at the end of a file', () => {
  const data = { username: 'u\n', password: 'p\r\n' };
  expect(credentialsOf({ data })).toEqual({ username: 'u', password: 'p' });
  expect(credentialsOf({ data: { username: 'u', password: '' } })?.password).toBe('');
  expect(credentialsOf(undefined)).toBeUndefined();
});
