import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { choosePort } from '#deploy/local/ports.ts';

it('takes a free port as it is, and any free one for 0', async () => {
  const free = await choosePort('--edge-port', 0);
  expect(free).toBeGreaterThan(1023);
  await expect(choosePort('--edge-port', free)).resolves.toBe(free);
});

it('names the flag of a port that is in use', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await expect(choosePort('--api-port', port)).rejects.toThrow(
    `--api-port: port ${port} is in use`,
  );
  await new Promise((resolve) => server.close(resolve));
});
