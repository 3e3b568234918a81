import { describe, expect, test } from 'vitest';
import type { LogFormat } from '#agent/config.ts';
import { createLog } from '#agent/telemetry/log.ts';
import { createScrubber } from '#agent/telemetry/scrub.ts';

async function setUp(format: LogFormat = 'json', level: 'info' | 'debug' = 'info') {
  const lines: string[] = [];
  const scrubber = createScrubber();
  const destination = { write: (line: string) => void lines.push(line) };
  const log = await createLog({ level, format, scrubber, destination });
  return { log, lines, scrubber };
}

describe('log', () => {
  test('is one JSON object a line, with a level that has a name', async () => {
    const { log, lines } = await setUp();
    log.info({ proxy: 'crawl/a' }, 'reconciled');
    log.debug({}, 'not at this level');
    expect(lines).toHaveLength(1);
    const line = JSON.parse(lines[0] ?? '');
    expect(line).toMatchObject({ level: 'info', proxy: 'crawl/a', msg: 'reconciled' });
    expect(Date.parse(line.time)).not.toBeNaN();
  });

  test('is readable in the pretty format', async () => {
    const { log, lines } = await setUp('pretty');
    log.warn({ proxy: 'crawl/a' }, 'careful');
    expect(lines.join('')).toMatch(/WARN.*careful/);
    expect(() => JSON.parse(lines[0] ?? '')).toThrow();
  });

  test('secrets go by the name of their field, by their form and by their value', async () => {
    const { log, lines, scrubber } = await setUp();
    scrubber.hide('the-agent-token');
    log.info(
      {
        credentials: { username: 'u', password: 'hunter2' },
        endpoint: { password: 'hunter2', host: 'h' },
        request: { headers: { authorization: 'Bearer abcdef123' } },
        cloudInit: '#cloud-config hunter2',
        url: 'http://user:hunter2@proxy.example:3128/',
        note: 'sent the-agent-token and Basic dTpodW50ZXIy',
      },
      'refused by socks5://u:hunter2@10.0.0.1',
    );
    const [line] = lines;
    for (const secret of ['hunter2', 'the-agent-token', 'abcdef123', 'dTpodW50ZXIy']) {
      expect(line).not.toContain(secret);
    }
    expect(line).toContain('proxy.example:3128');
    expect(line).toContain('"host":"h"');
  });

  test('errors are told with their causes, and clean as well', async () => {
    const { log, lines } = await setUp();
    const cause = Object.assign(new Error('connect http://u:hunter2@h failed'), { code: 'ECONN' });
    log.error({ err: new Error('outer', { cause }) }, 'failed');
    const { err } = JSON.parse(lines[0] ?? '');
    expect(err).toMatchObject({
      name: 'Error',
      message: 'outer',
      cause: { message: 'connect http://***@h failed', code: 'ECONN' },
    });
    expect(err.stack).toContain('log.test.ts');
    expect(err.cause.stack).toBeUndefined();
    log.error({ err: 'not an error' }, 'failed');
    expect(JSON.parse(lines[1] ?? '').err).toBe('not an error');
  });
});
