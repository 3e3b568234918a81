import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type KubectlCluster, proxyManifest, startKubectlCluster } from './cluster.ts';
import { kubectlPrograms } from './programs.ts';

for (const { title, path } of kubectlPrograms()) {
  describe.skipIf(path === undefined)(`writing with ${title}`, () => {
    let cluster: KubectlCluster;
    beforeAll(async () => {
      cluster = await startKubectlCluster(path ?? '');
    });
    afterAll(() => cluster?.[Symbol.asyncDispose]());

    const jsonPath = (kind: string, name: string, expression: string) =>
      cluster.ok('get', kind, name, '-o', `jsonpath={${expression}}`);

    it('applies, applies a change, and tells when nothing changes', async () => {
      const manifest = proxyManifest('applied', 'maxLeases: 3, attributes: {a: "1", b: "2"}');
      expect(await cluster.apply(manifest)).toContain('applied created');
      const changed = proxyManifest('applied', 'attributes: {b: "3"}');
      expect(await cluster.apply(changed)).toContain('applied configured');
      expect(await cluster.apply(changed)).toContain('applied unchanged');
      // What left the manifest leaves the object: a goes, maxLeases is defaulted again.
      expect(await jsonPath('px', 'applied', '.spec.attributes')).toBe('{"b":"3"}');
      expect(await jsonPath('px', 'applied', '.spec.maxLeases')).toBe('10');
      expect(await jsonPath('px', 'applied', '.metadata.generation')).toBe('2');
    });

    it('applies on the side of the server and minds who owns which field', async () => {
      const apply = (manager: string, value: string, ...more: string[]) =>
        cluster.kubectl(
          ['apply', '--server-side', `--field-manager=${manager}`, '-f', '-', ...more],
          { stdin: proxyManifest('shared', `attributes: {a: "${value}"}`) },
        );
      expect((await apply('one', '1')).out).toContain('serverside-applied');
      const refused = await apply('two', '2');
      expect(refused.code).not.toBe(0);
      expect(refused.err).toContain('conflict with "one": .spec.attributes.a');
      expect((await apply('two', '2', '--force-conflicts')).code).toBe(0);
      expect(await jsonPath('px', 'shared', '.spec.attributes.a')).toBe('2');
    });

    it('applies a pod by a strategic merge: containers merge by name', async () => {
      const pod = (image: string) => `
apiVersion: v1
kind: Pod
metadata: {name: merged}
spec: {containers: [{name: main, image: "${image}"}]}
`;
      await cluster.apply(pod('a:1'));
      const side = '{"spec":{"containers":[{"name":"main","image":"a:2"}]}}';
      await cluster.ok('patch', 'pod', 'merged', '--type=strategic', '-p', side);
      expect(await jsonPath('pod', 'merged', '.spec.containers[*].image')).toBe('a:2');
      await cluster.apply(pod('a:3'));
      expect(await jsonPath('pod', 'merged', '.spec.containers[*].image')).toBe('a:3');
    });

    it('patches by merge and by JSON operations, and not strategically where there is no type', async () => {
      await cluster.apply(proxyManifest('patched', 'attributes: {a: "1"}'));
      const patch = (...args: string[]) => cluster.kubectl(['patch', 'px', 'patched', ...args]);
      const merge = '{"spec":{"maxLeases":4,"attributes":{"a":null,"b":"2"}}}';
      expect((await patch('--type=merge', '-p', merge)).code).toBe(0);
      const operations = '[{"op":"replace","path":"/spec/maxLeases","value":5}]';
      expect((await patch('--type=json', '-p', operations)).code).toBe(0);
      expect(await jsonPath('px', 'patched', '.spec.attributes')).toBe('{"b":"2"}');
      expect(await jsonPath('px', 'patched', '.spec.maxLeases')).toBe('5');
      const strategic = await patch('-p', '{"spec":{"maxLeases":6}}');
      expect(strategic.code).toBe(1);
      expect(strategic.err).toContain('application/merge-patch+json');
    });

    it('labels and annotates', async () => {
      await cluster.apply(proxyManifest('labelled'));
      await cluster.ok('label', 'px', 'labelled', 'tier=gold');
      await cluster.ok('annotate', 'px', 'labelled', 'note=hello');
      const found = await cluster.ok('get', 'px', '-l', 'tier in (gold,silver)', '-o', 'name');
      expect(found.trim()).toBe('proxy.crawl.example.com/labelled');
      await cluster.ok('label', 'px', 'labelled', 'tier-');
      expect(await jsonPath('px', 'labelled', '.metadata.labels')).toBe('');
      expect(await jsonPath('px', 'labelled', '.metadata.annotations.note')).toBe('hello');
    });

    it.each([
      ['an unknown value', 'deletionPolicy: Never', ['spec.deletionPolicy', '"Delete", "Orphan"']],
      ['a number out of bounds', 'port: 70000', ['spec.port', 'less than or equal to 65535']],
      ['a field that its mode forbids', 'provider: local', ['spec.provider: Forbidden']],
      [
        'a broken rule between fields',
        'healthCheck: {intervalSeconds: 2, timeoutSeconds: 3}',
        ['spec.healthCheck.timeoutSeconds', 'must not be greater than intervalSeconds'],
      ],
      ['an unknown field', 'maxLease: 3', ['unknown field', 'maxLease']],
    ])('is refused %s, with the field named', async (_case, spec, said) => {
      const stdin = proxyManifest('refused', spec);
      const { code, err } = await cluster.kubectl(['apply', '-f', '-'], { stdin });
      expect(code).toBe(1);
      for (const words of said) expect(err).toContain(words);
      const { err: absent } = await cluster.kubectl(['get', 'px', 'refused']);
      expect(absent).toBe(
        'Error from server (NotFound): proxies.crawl.example.com "refused" not found\n',
      );
    });

    it('is refused a change of what is immutable', async () => {
      await cluster.apply(proxyManifest('fixed'));
      const spec = { mode: 'Managed', provider: 'local', endpoint: null };
      const patch = JSON.stringify({ spec });
      const { err } = await cluster.kubectl(['patch', 'px', 'fixed', '--type=merge', '-p', patch]);
      expect(err).toContain('spec.mode: Invalid value: "string": mode is immutable');
    });

    it('is refused a stale replacement', async () => {
      await cluster.apply(proxyManifest('stale'));
      const stdin = await cluster.ok('get', 'px', 'stale', '-o', 'json');
      await cluster.ok('label', 'px', 'stale', 'a=b');
      const { err } = await cluster.kubectl(['replace', '-f', '-'], { stdin });
      expect(err).toContain(
        'Operation cannot be fulfilled on proxies.crawl.example.com "stale": the object has been modified',
      );
    });

    it('deletes, and waits for finalizers before it says so', async () => {
      await cluster.apply(proxyManifest('gone'));
      await cluster.ok('delete', 'px', 'gone', '--timeout=10s');
      await cluster.apply(proxyManifest('held'));
      const finalizers = (list: string) => `{"metadata":{"finalizers":${list}}}`;
      const patch = ['patch', 'px', 'held', '--type=merge', '-p'];
      await cluster.ok(...patch, finalizers('["crawl.example.com/instance"]'));
      await cluster.ok('delete', 'px', 'held', '--wait=false');
      expect(await jsonPath('px', 'held', '.metadata.deletionTimestamp')).not.toBe('');
      const found = cluster.answered(/^GET \S+\/proxies\S* 200 /);
      const waiting = cluster.ok('wait', '--for=delete', 'px/held', '--timeout=10s');
      await found;
      await cluster.ok(...patch, finalizers('null'));
      await waiting;
      expect(await cluster.ok('get', 'px', 'held', '--ignore-not-found')).toBe('');
    });

    it('creates namespaces and what is in them, and deletes both together', async () => {
      await cluster.ok('create', 'namespace', 'short');
      await cluster.ok('-n', 'short', 'create', 'secret', 'generic', 's', '--from-literal=a=b');
      await cluster.ok('-n', 'short', 'create', 'configmap', 'c', '--from-literal=a=b');
      await cluster.ok('delete', 'namespace', 'short', '--timeout=10s');
      expect(await cluster.ok('get', 'secrets,configmaps', '-A')).not.toContain('short');
      const { err } = await cluster.kubectl(['get', 'namespace', 'short']);
      expect(err).toContain('namespaces "short" not found');
    });
  });
}
