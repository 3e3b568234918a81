/** Until when an operation may take effect that got no answer. */
import { describe, expect, it } from 'vitest';
import type { Outage, Outcome } from './history.ts';
import { settle } from './recorder.ts';

const OUTAGES: readonly Outage[] = [
  { fromMs: 100, deadMs: 110, toMs: 150 },
  { fromMs: 500, deadMs: 510, toMs: 550 },
];
const BROKEN: Outcome = { kind: 'lost', why: 'broken' };
const HUNG_UP: Outcome = { kind: 'lost', why: 'hung up' };
const BUSY: Outcome = { kind: 'answered', status: 503, code: 'overloaded' };
const FOR_EVER = Number.POSITIVE_INFINITY;

const settled = (calledMs: number, endMs: number, outcome: Outcome) =>
  settle({ calledMs, endMs }, outcome, OUTAGES);

describe('an operation without an answer', () => {
  it.each([
    { name: 'that a kill cut: until that kill', span: [90, 112], endMs: 110 },
    { name: 'that noticed it before the process was seen to end', span: [90, 105], endMs: 110 },
    { name: 'that met a connection of the dead: the next', span: [120, 121], endMs: 510 },
    { name: 'that the second kill cut', span: [160, 512], endMs: 510 },
  ])('may happen, if it is one $name', ({ span: [calledMs = 0, endMs = 0], endMs: until }) => {
    expect(settled(calledMs, endMs, BROKEN)).toEqual({ endMs: until, outcome: BROKEN });
  });

  it('is a fault when nobody killed the edge', () => {
    const stray = { kind: 'lost', why: 'stray' };
    expect(settled(200, 210, BROKEN)).toEqual({ endMs: 510, outcome: stray });
    expect(settled(600, 610, BROKEN)).toEqual({ endMs: FOR_EVER, outcome: stray });
  });

  it('whose client hung up may happen until the next kill', () => {
    expect(settled(200, 210, HUNG_UP)).toEqual({ endMs: 510, outcome: HUNG_UP });
    expect(settled(600, 610, HUNG_UP)).toEqual({ endMs: FOR_EVER, outcome: HUNG_UP });
  });
});

it('an operation with a 503 may still happen until the next kill', () => {
  expect(settled(20, 30, BUSY)).toEqual({ endMs: 110, outcome: BUSY });
  expect(settled(600, 610, BUSY)).toEqual({ endMs: FOR_EVER, outcome: BUSY });
});
