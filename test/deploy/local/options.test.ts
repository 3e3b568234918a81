import { expect, it } from 'vitest';
import { StartFault } from '#deploy/local/fault.ts';
import { parseOptions } from '#deploy/local/options.ts';

function faultOf(args: readonly string[]): StartFault {
  try {
    parseOptions(args, {});
  } catch (error) {
    if (error instanceof StartFault) return error;
  }
  throw new Error('no fault');
}

it('has the defaults of the contract', () => {
  expect(parseOptions([], {})).toEqual({
    once: false,
    json: false,
    help: false,
    edgePort: 8787,
    apiPort: 6443,
    metricsPort: 8080,
    stateDir: '.local',
    proxies: 3,
  });
});

it('takes every flag and the environment', () => {
  const args = ['--once', '--json', '--edge-port=1', '--api-port', '2', '--metrics-port=0'];
  const env = { KUBEBUILDER_ASSETS: '/assets', SQUID: '/opt/squid' };
  expect(parseOptions([...args, '--state-dir=/s', '--proxies=7', '--kubeconfig=/k'], env)).toEqual({
    once: true,
    json: true,
    help: false,
    edgePort: 1,
    apiPort: 2,
    metricsPort: 0,
    stateDir: '/s',
    proxies: 7,
    kubeconfig: '/k',
    assetsDir: '/assets',
    squid: '/opt/squid',
  });
});

it.each([
  [['--proxy=3'], '--proxy'],
  [['up'], 'up'],
  [['--edge-port=65536'], '--edge-port'],
  [['--edge-port=x'], '--edge-port'],
  [['--api-port=-1'], '--api-port'],
  [['--proxies=0'], '--proxies'],
  [['--proxies=1.5'], '--proxies'],
  [['--state-dir='], '--state-dir'],
  [['--edge-port=8080'], '--metrics-port'],
])('refuses %j and names the flag', (args, named) => {
  const fault = faultOf(args);
  expect(fault.exitCode).toBe(2);
  expect(fault.message).toContain(named);
});

it('tells all faults at once', () => {
  const fault = faultOf(['--edge-port=x', '--proxies=y']);
  expect(fault.message).toContain('--edge-port');
  expect(fault.message).toContain('--proxies');
});

it('lets several ports be any free one', () => {
  const args = ['--edge-port=0', '--api-port=0', '--metrics-port=0'];
  expect(parseOptions(args, {})).toMatchObject({ edgePort: 0, apiPort: 0, metricsPort: 0 });
});
