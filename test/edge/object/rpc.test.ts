import { describe, expect, it } from 'vitest';
import { type Call, type LedgerWire, overWire, RPC_VERSION } from '#edge/object/rpc.ts';

/** An object that remembers what it was sent, and answers with `reply`. */
function objectThatAnswers(reply: unknown) {
  const sent: string[] = [];
  const wire: LedgerWire = {
    call: async (text) => {
      sent.push(text);
      return JSON.stringify(reply);
    },
  };
  return { rpc: overWire(wire), sent };
}

const RELEASE: Call<'release'> = { version: RPC_VERSION, op: 'release', args: { id: '0.a' } };

describe('a call over the wire', () => {
  it('sends the version with every call, where another version can read it', async () => {
    const { rpc, sent } = objectThatAnswers({ ok: true });
    await rpc.call(RELEASE);
    expect(sent.map((text) => JSON.parse(text))).toEqual([RELEASE]);
  });

  it('brings back a refusal as a value', async () => {
    const refusal = { ok: false, refusal: { code: 'unsupported_version' } };
    expect(await objectThatAnswers(refusal).rpc.call(RELEASE)).toEqual(refusal);
  });

  it.each(['plain', 'é', '\u2028', '\ud800', '__proto__'])(
    'keeps a name such as %j',
    async (name) => {
      const value = { [name]: name };
      const selector = Object.defineProperty({}, name, { value: name, enumerable: true });
      const { rpc, sent } = objectThatAnswers({ ok: true, value });
      const request = { selector };
      const args = { leaseID: '0.a', request, waitMs: 0, place: 'first' } as const;
      await rpc.call({ version: RPC_VERSION, op: 'acquire', args });
      expect(Object.entries(JSON.parse(sent[0] ?? '').args.request.selector)).toEqual([
        [name, name],
      ]);
    },
  );

  it('rejects as the object does', async () => {
    const wire: LedgerWire = { call: () => Promise.reject(new Error('gone')) };
    await expect(overWire(wire).call(RELEASE)).rejects.toThrow('gone');
  });
});
