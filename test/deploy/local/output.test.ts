import { expect, it } from 'vitest';
import { humanOutput, jsonOutput, type Step, table } from '#deploy/local/output.ts';

const READY: Step = {
  step: 'ready',
  proxies: [
    { proxy: 'sample-1', phase: 'Ready', ip: '127.42.0.2', egressIP: '127.42.0.2' },
    {
      proxy: 'sample-10',
      phase: 'Ready',
      ip: '127.42.0.11',
      egressIP: '127.42.0.11',
      latencyMillis: 7,
    },
  ],
};
const FETCHED: Step = {
  step: 'fetched',
  status: 200,
  egressIP: '127.42.0.2',
  leaseID: 'abc',
  proxy: 'sample-1',
  namespace: 'default',
};

function human(steps: readonly Step[], tokensFile?: string): string {
  let text = '';
  const write = (more: string) => {
    text += more;
  };
  const output = humanOutput(write, { elapsedMs: () => 1500, tokensFile });
  for (const step of steps) output.step(step);
  return text;
}

it('writes one JSON line for each step, the step first', () => {
  const lines: string[] = [];
  const output = jsonOutput((line) => lines.push(line));
  output.step(READY);
  output.step(FETCHED);
  expect(lines).toHaveLength(2);
  expect(lines[1]).toBe(`${JSON.stringify(FETCHED)}\n`);
  expect(lines[1]).toMatch(/^\{"step":"fetched",/);
});

it('lines the columns of the table up', () => {
  const lines = READY.step === 'ready' ? table(READY.proxies).split('\n') : [];
  expect(lines).toHaveLength(3);
  const columns = lines.map((line) => line.indexOf(line.includes('PHASE') ? 'PHASE' : 'Ready'));
  expect(new Set(columns).size).toBe(1);
  expect(lines[2]).toContain('7 ms');
});

it('says how many rows it leaves out', () => {
  const row = { proxy: 'p', phase: 'Ready', ip: '', egressIP: '' };
  expect(table(Array.from({ length: 25 }, () => row))).toMatch(/and 5 more$/);
});

it('tells a person the page, its egress address and what to try next', () => {
  const steps: Step[] = [
    { step: 'control-plane', url: 'https://127.0.0.1:6443', kubeconfig: '/s/kubeconfig' },
    { step: 'edge', url: 'http://127.0.0.1:8787' },
    FETCHED,
  ];
  const text = human(steps, '/s/tokens.json');
  expect(text).toContain('status 200, seen from 127.42.0.2');
  expect(text).toMatch(/curl .*\/s\/tokens\.json.* http:\/\/127\.0\.0\.1:8787\/v1\/leases\n/);
  expect(text).toMatch(/kubectl --kubeconfig \S*s\/kubeconfig get proxies/);
  expect(human(steps)).not.toContain('curl');
});

it('says which part is started again, why and when', () => {
  const text = human([{ step: 'restarting', part: 'edge', reason: 'SIGKILL', inMs: 500 }]);
  expect(text).toBe('  1.5s  the edge ended (SIGKILL); starting it again in 0.5 s\n');
});
