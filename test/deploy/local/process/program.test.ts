import { expect, it } from 'vitest';
import { isProgram } from '#deploy/local/process/program.ts';

it.each([
  ['/bin/sh', true],
  ['/etc/passwd', false],
  ['/usr', false],
  ['/no/such', false],
])('%s can be run: %s', (file, runs) => {
  expect(isProgram(file)).toBe(runs);
});
