import { describe, expect, test } from 'vitest';
import { type Exchange, elided, wireFields, wireLog } from '#agent/providers/gcp/wire-log.ts';

const SENTINEL = 'sentinel-of-user-data';
const instance = {
  name: 'a',
  metadata: { fingerprint: 'f', items: [{ key: 'user-data', value: SENTINEL }] },
};
const exchange: Exchange = {
  method: 'POST',
  target: '/compute/v1/projects/p/zones/z/instances?requestId=1',
  status: 200,
  durationMs: 12,
  request: JSON.stringify(instance),
  answer: JSON.stringify({ items: { 'zones/z': { instances: [instance] } } }),
};

describe('the wire log', () => {
  test('counts payloads unless it is told to show them', () => {
    const fields = wireFields(exchange, false);
    expect(fields).toEqual({
      method: 'POST',
      target: exchange.target,
      status: 200,
      durationMs: 12,
      requestBytes: exchange.request.length,
    });
  });

  test('shows payloads without the values of metadata, at any depth', () => {
    const text = JSON.stringify(wireFields(exchange, true));
    expect(text).toContain('zones/z');
    expect(text).toContain(`user-data: <${SENTINEL.length} characters>`);
    expect(text).not.toContain(SENTINEL);
  });

  test('shows nothing of what is no JSON, and the beginning of what is long', () => {
    expect(elided(`<html>${SENTINEL}`)).toBe('<27 characters, not JSON>');
    expect(elided(JSON.stringify('x'.repeat(50_000))).length).toBeLessThan(17_000);
  });

  test.each([
    ['info', true, undefined],
    ['debug', true, undefined],
    ['trace', false, false],
    ['trace', true, true],
  ])('at level %s, full payloads %s', (logLevel, gcpWireLogFullPayloads, shows) => {
    const lines: string[] = [];
    const log = { trace: (fields: object) => void lines.push(JSON.stringify(fields)) };
    const { wire, readAnswers } = wireLog(log, 'gcp-eu', { logLevel, gcpWireLogFullPayloads });
    wire?.(exchange);
    expect(lines).toHaveLength(shows === undefined ? 0 : 1);
    expect(readAnswers).toBe(shows === true);
    expect(lines.join().includes('"answer"')).toBe(shows === true);
    expect(lines.join()).not.toContain(SENTINEL);
  });
});
