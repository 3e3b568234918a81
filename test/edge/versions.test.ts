/** A deployment in progress: the Worker and its objects may be of different versions. */
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { RPC_VERSION } from '#edge/object/rpc.ts';

const ask = async (call: object) =>
  JSON.parse(await env.LEDGER.getByName('ledger-0').call(JSON.stringify(call)));

describe('an object that is called in a way it does not know', () => {
  it.each([
    ['of a later version', { version: RPC_VERSION + 1, op: 'stats' }],
    ['of no version', { op: 'stats' }],
    ['that is none of its own', { version: RPC_VERSION, op: 'toString' }],
    ['without a name', { version: RPC_VERSION }],
  ])('refuses a call %s, and says that it is for the version', async (_, call) => {
    expect(await ask(call)).toEqual({ ok: false, refusal: { code: 'unsupported_version' } });
  });

  it('answers one of its own version', async () => {
    expect(await ask({ version: RPC_VERSION, op: 'stats' })).toMatchObject({ ok: true });
  });
});
