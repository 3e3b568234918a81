import { reset } from 'cloudflare:test';
import { beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { edgeWith } from './edge-app.ts';
import { CRAWLER, crawl, entry, lease, send, syncFull } from './requests.ts';

const clock = systemClock;

beforeEach(async () => {
  await reset();
  await syncFull(entry('a', { maxLeases: 1 }));
});

async function waiting(): Promise<number> {
  return Number((await crawl('GET', '/v1/stats')).body.waiting);
}

/** Resolves when so many requests wait. */
async function untilWaiting(count: number): Promise<void> {
  for (let round = 0; round < 200; round++) {
    if ((await waiting()) === count) return;
    await clock.sleep(10);
  }
  throw new Error(`${await waiting()} requests wait, not ${count}`);
}

describe('waitSeconds', () => {
  it('waits for a proxy to come free, first come first served', async () => {
    const holder = await lease();
    const first = lease({ waitSeconds: 10 });
    await untilWaiting(1);
    const second = lease({ waitSeconds: 10 });
    await untilWaiting(2);
    await crawl('DELETE', `/v1/leases/${holder.id}`);
    const granted = await first;
    expect(granted).toMatchObject({ status: 201, body: { proxy: { name: 'a' } } });
    expect(await waiting()).toBe(1);
    await crawl('DELETE', `/v1/leases/${granted.id}`);
    expect(await second).toMatchObject({ status: 201 });
  });

  it('is granted by what an agent tells', async () => {
    await lease();
    const asking = lease({ waitSeconds: 10 });
    await untilWaiting(1);
    await syncFull(entry('a', { maxLeases: 1 }), entry('b'));
    expect(await asking).toMatchObject({ status: 201, body: { proxy: { name: 'b' } } });
  });

  it('is refused with the counts when its time is over', async () => {
    await lease();
    const startedMs = clock.monotonicMs();
    const answer = await lease({ waitSeconds: 0.3 });
    expect(answer).toMatchObject({ status: 409, body: { error: 'no_match', atCapacity: 1 } });
    expect(clock.monotonicMs() - startedMs).toBeGreaterThanOrEqual(300);
    expect(await waiting()).toBe(0);
  });

  it('is answered at once when there is a proxy', async () => {
    const startedMs = clock.monotonicMs();
    expect((await lease({ waitSeconds: 30 })).status).toBe(201);
    expect(clock.monotonicMs() - startedMs).toBeLessThan(5_000);
  });

  it('is a number from 0 to 30', async () => {
    for (const waitSeconds of [-1, 30.1, '5', null]) {
      const answer = await lease({ waitSeconds });
      expect(answer).toMatchObject({ status: 400, body: { field: 'waitSeconds' } });
    }
  });
});

describe('a crawler that hangs up while it waits', () => {
  it('leaves the queue, and leaves no lease behind', async () => {
    const late: Promise<unknown>[] = [];
    const edge = edgeWith(
      { DISCOVERY_TOKEN: CRAWLER },
      { clock, waitUntil: (work) => void late.push(work) },
    );
    const holder = await lease();
    const hangUp = new AbortController();
    const options = { token: CRAWLER, json: { waitSeconds: 20 }, signal: hangUp.signal };
    const asking = edge.send('POST', '/v1/leases', options).catch(() => undefined);
    await untilWaiting(1);
    hangUp.abort();
    await untilWaiting(0);
    await Promise.all(late);
    await asking;
    await crawl('DELETE', `/v1/leases/${holder.id}`);
    expect((await crawl('GET', '/v1/stats')).body).toMatchObject({ leases: { active: 0 } });
  });

  it('unnoticed is noticed when it is answered, and its lease is given back', async () => {
    const late: Promise<unknown>[] = [];
    const edge = edgeWith(
      { DISCOVERY_TOKEN: CRAWLER },
      { clock, waitUntil: (work) => void late.push(work) },
    );
    const holder = await lease();
    const answering = edge.fetch(
      new Request('https://edge.example/v1/leases', {
        method: 'POST',
        headers: { authorization: `Bearer ${CRAWLER}`, 'content-type': 'application/json' },
        body: JSON.stringify({ waitSeconds: 20 }),
      }),
    );
    await untilWaiting(1);
    await clock.sleep(50);
    await crawl('DELETE', `/v1/leases/${holder.id}`);
    const response = await answering;
    expect(response.status).toBe(201);
    await response.body?.cancel();
    await Promise.all(late);
    expect((await crawl('GET', '/v1/stats')).body).toMatchObject({ leases: { active: 0 } });
  });

  it('after its answer has come keeps its lease', async () => {
    const hangUp = new AbortController();
    const json = { waitSeconds: 20 };
    const options = { token: CRAWLER, json, signal: hangUp.signal };
    const answer = await send('POST', '/v1/leases', options);
    hangUp.abort();
    await clock.sleep(50);
    expect(await crawl('GET', `/v1/leases/${answer.body.leaseID}`)).toMatchObject({ status: 200 });
  });
});
