import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type KubectlCluster, proxyManifest, startKubectlCluster } from './cluster.ts';
import { kubectlPrograms } from './programs.ts';

const STATUS = {
  phase: 'Ready',
  ip: '127.42.0.2',
  egressIP: '203.0.113.7',
  providerID: 'local/default/seen',
  latencyMillis: 12,
  conditions: [
    {
      type: 'Ready',
      status: 'True',
      reason: 'Probed',
      message: 'it answers',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    },
  ],
};

const AGENT = 'system:serviceaccount:crawl-system:egress-agent';
const PROXY_PATH = '/apis/crawl.example.com/v1alpha1/namespaces/default/proxies';

/** The cells of one printed row; columns are at least two blanks apart. */
const cells = (line: string | undefined) => (line ?? '').trim().split(/ {2,}/);

for (const { title, path } of kubectlPrograms()) {
  describe.skipIf(path === undefined)(`reading with ${title}`, () => {
    let cluster: KubectlCluster;

    const setStatus = (name: string, status: Readonly<Record<string, unknown>>) =>
      cluster.server.call(`${PROXY_PATH}/${name}/status`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/merge-patch+json' },
        body: JSON.stringify({ status }),
      });

    beforeAll(async () => {
      cluster = await startKubectlCluster(path ?? '');
      await cluster.apply(proxyManifest('seen'));
      await setStatus('seen', STATUS);
      await cluster.server.clock.advance(90_000);
    });
    afterAll(() => cluster?.[Symbol.asyncDispose]());

    it('prints the columns of a Proxy', async () => {
      const [header, row] = (await cluster.ok('get', 'px', 'seen')).split('\n');
      expect(cells(header)).toEqual(['NAME', 'MODE', 'PROVIDER', 'PHASE', 'IP', 'LATENCY', 'AGE']);
      expect(cells(row)).toEqual(['seen', 'External', 'Ready', '127.42.0.2', '12', '90s']);
    });

    it('prints the wide columns when asked', async () => {
      const [header, row] = (await cluster.ok('get', 'px', 'seen', '-o', 'wide')).split('\n');
      const wide = ['EGRESS IP', 'PROVIDER ID', 'REASON'];
      expect(cells(header).slice(-3)).toEqual(wide);
      expect(cells(row).slice(-3)).toEqual(['203.0.113.7', 'local/default/seen', 'Probed']);
    });

    it('finds the product by its category, in every namespace', async () => {
      expect(await cluster.ok('get', 'crawl', '-A')).toMatch(/default +proxy\S*\/seen /);
    });

    it('shows the object, its defaults included', async () => {
      const text = await cluster.ok('get', 'proxy', 'seen', '-o', 'yaml');
      for (const line of ['maxLeases: 10', 'phase: Ready', 'protocol: http', 'kind: Proxy']) {
        expect(text).toContain(line);
      }
    });

    it('follows changes', async () => {
      await cluster.apply(proxyManifest('followed'));
      // Not by name: of a named object kubectl watches from version 0 and drops the first event, so
      // a change between its GET and its watch is never printed. A list goes on from its version.
      const one = '--field-selector=metadata.name=followed';
      const following = cluster.follow('get', 'px', one, '-w');
      try {
        await following.until(/^followed /m);
        await setStatus('followed', { phase: 'Ready' });
        await following.until(/^followed .* Ready /m);
        await setStatus('followed', { phase: 'Unhealthy' });
        await following.until(/^followed .* Unhealthy /m);
      } finally {
        await following.stop();
      }
    });

    it('waits for a condition, whether it holds already or comes later', async () => {
      await cluster.ok('wait', '--for=condition=Ready', 'px/seen', '--timeout=10s');
      await cluster.ok('wait', '--for', 'condition=established', 'crd', '--all', '--timeout=10s');
      await cluster.apply(proxyManifest('later'));
      const waiting = cluster.ok('wait', '--for=condition=Ready', 'px/later', '--timeout=10s');
      await setStatus('later', { conditions: STATUS.conditions });
      expect(await waiting).toContain('condition met');
    });

    it('describes the object with the events about it', async () => {
      const uid = await cluster.ok('get', 'px', 'seen', '-o', 'jsonpath={.metadata.uid}');
      const regarding = {
        apiVersion: 'crawl.example.com/v1alpha1',
        kind: 'Proxy',
        namespace: 'default',
        name: 'seen',
        uid,
      };
      const { status } = await cluster.server.call(
        '/apis/events.k8s.io/v1/namespaces/default/events',
        {
          method: 'POST',
          token: cluster.server.controlPlane.agentToken,
          body: {
            apiVersion: 'events.k8s.io/v1',
            kind: 'Event',
            metadata: { generateName: 'seen.' },
            eventTime: '2026-01-01T00:00:01.000000Z',
            reportingController: 'crawl.example.com/agent',
            reportingInstance: 'agent-1',
            action: 'Create',
            reason: 'Created',
            note: 'made an instance',
            type: 'Normal',
            regarding,
          },
        },
      );
      expect(status).toBe(201);
      const text = await cluster.ok('describe', 'px', 'seen');
      expect(text).toMatch(/^Name: +seen$/m);
      expect(text).toMatch(/^ +Egress IP: +203\.0\.113\.7$/m);
      expect(text).toMatch(/Normal +Created .*made an instance/);
    });

    it('explains every field', async () => {
      const all = await cluster.ok('explain', 'proxy.spec', '--recursive');
      for (const field of ['attributes', 'authSecretRef', 'failureThreshold', 'drainSeconds']) {
        expect(all).toContain(field);
      }
      const one = await cluster.ok('explain', 'px.spec.healthCheck.intervalSeconds');
      expect(one).toContain('Time between two probes.');
      expect(one).toContain('<integer>');
      expect(await cluster.ok('explain', 'pod.spec.containers')).toContain('image');
    });

    it('lists what the API serves', async () => {
      const text = await cluster.ok('api-resources');
      expect(text).toMatch(/^proxies +px +crawl\.example\.com\/v1alpha1 +true +Proxy$/m);
      expect(text).toMatch(/^providerhealths +ph +\S+ +false +ProviderHealth$/m);
      expect(text).toMatch(/^pods +po +v1 +true +Pod$/m);
      expect(await cluster.ok('api-versions')).toContain('crawl.example.com/v1alpha1');
    });

    it('tells where the cluster is, and what is in it', async () => {
      const { port } = cluster.server.controlPlane;
      expect(await cluster.ok('cluster-info')).toContain(`https://127.0.0.1:${port}`);
      await cluster.apply(
        'apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n',
      );
      const all = await cluster.ok('get', 'all');
      expect(all).toMatch(/^service\/web +ClusterIP +<none> +<none> +80\/TCP /m);
      await cluster.ok('delete', 'service', 'web');
      expect((await cluster.kubectl(['get', 'nodes'])).err).toContain('No resources found');
    });

    it('tells what a user may do', async () => {
      const canI = async (user: 'admin' | 'agent', ...args: string[]) =>
        (await cluster.kubectl(['auth', 'can-i', ...args], { user })).out.trim();
      expect(await canI('admin', 'delete', 'namespaces')).toBe('yes');
      expect(await canI('agent', 'patch', 'proxies', '--subresource=status')).toBe('yes');
      expect(await canI('agent', 'delete', 'namespaces')).toBe('no');
      expect(await canI('admin', 'delete', 'namespaces', `--as=${AGENT}`)).toBe('no');
      const { err } = await cluster.kubectl(['delete', 'ns', 'default'], { user: 'agent' });
      expect(err).toContain(
        `namespaces "default" is forbidden: User "${AGENT}" cannot delete resource "namespaces"`,
      );
    });

    it('reads long lists in pages', async () => {
      const names = Array.from({ length: 7 }, (_, index) => `many-${index}`);
      const secret = (name: string) =>
        `---\napiVersion: v1\nkind: Secret\nmetadata: {name: ${name}}\n`;
      await cluster.apply(names.map(secret).join(''));
      const listed = await cluster.ok('get', 'secrets', '--chunk-size=2', '-o', 'name');
      expect(listed.trim().split('\n')).toEqual(names.map((name) => `secret/${name}`));
    });
  });
}
