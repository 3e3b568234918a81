import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { createKubeClient } from '#agent/kube/client.ts';
import { createInformer, type InformerObserver } from '#agent/kube/informer.ts';
import { WATCH_SILENCE_MS } from '#agent/kube/silence.ts';
import {
  answerJson,
  type FakeRequest,
  listBody,
  startFakeApiServer,
  statusBody,
  watchLine,
} from '#test/fakes/api-server.ts';
import { FakeClock } from '#test/fakes/clock.ts';

const thingSchema = z.object({
  metadata: z.object({
    namespace: z.string(),
    name: z.string(),
    uid: z.string(),
    resourceVersion: z.string(),
  }),
  color: z.string(),
});

function thing(name: string, resourceVersion: number | string, color = 'red') {
  const metadata = {
    namespace: 'ns',
    name,
    uid: `uid-${name}`,
    resourceVersion: `${resourceVersion}`,
  };
  return { metadata, color };
}

type Script = (request: FakeRequest, response: ServerResponse, nth: number) => void;

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** An informer against a server on which `list` and `watch` answer the nth request of their kind. */
async function setUp(list: Script, watch: Script) {
  let lists = 0;
  let watches = 0;
  const server = await startFakeApiServer((request, response) => {
    if (request.query.get('watch') === 'true') watch(request, response, ++watches);
    else list(request, response, ++lists);
  });
  const clock = new FakeClock();
  const access = {
    server: server.url,
    credentials: async () => ({ headers: {}, tls: {} }),
    refresh: () => {},
  };
  const client = createKubeClient({ access, clock, userAgent: 'test' });
  const observer = {
    listed: vi.fn(),
    failed: vi.fn(),
    recovered: vi.fn(),
    unparsable: vi.fn(),
    listenerFailed: vi.fn(),
  } satisfies InformerObserver;
  const informer = createInformer({
    client,
    type: { group: 'example.com', version: 'v1', plural: 'things' },
    options: { namespace: 'ns', labelSelector: 'a=b' },
    parse: (object) => thingSchema.parse(object),
    clock,
    random: () => 0.5,
    observer,
  });
  const changes: string[] = [];
  informer.subscribe((key) => changes.push(key));
  const stop = new AbortController();
  const done = informer.run(stop.signal);
  cleanups.push(async () => {
    stop.abort(new Error('test is over'));
    await done;
    await client.close();
    await server.close();
  });
  /** Waits, with time standing still, until `check` holds. */
  const eventually = (check: () => void) => vi.waitFor(check, { timeout: 5_000, interval: 5 });
  const colors = () => [...informer.list()].map((each) => `${each.metadata.name} ${each.color}`);
  const watchVersions = () =>
    server.requests
      .filter((request) => request.query.get('watch') === 'true')
      .map((request) => request.query.get('resourceVersion'));
  const listCount = () => lists;
  return {
    server,
    clock,
    informer,
    observer,
    changes,
    stop,
    done,
    eventually,
    colors,
    watchVersions,
    listCount,
  };
}

const openWatch: Script = (_request, response) => {
  response.writeHead(200).flushHeaders();
};

const emptyList: Script = (_request, response) => answerJson(response, 200, listBody([], '100'));

describe('informer', () => {
  test('lists page by page, then watches from the version of the list', async () => {
    const it = await setUp((request, response) => {
      const second = request.query.get('continue') === 'next';
      const page = second
        ? listBody([thing('b', 8)], '100')
        : listBody([thing('a', 7)], '100', 'next');
      answerJson(response, 200, page);
    }, openWatch);
    await it.informer.whenSynced(it.stop.signal);
    await it.eventually(() => expect(it.watchVersions()).toEqual(['100']));
    expect(it.colors()).toEqual(['a red', 'b red']);
    expect(it.changes).toEqual(['ns/a', 'ns/b']);
    const [first, , watch] = it.server.requests;
    expect(first?.path).toBe('/apis/example.com/v1/namespaces/ns/things');
    expect(first?.query.get('labelSelector')).toBe('a=b');
    expect(first?.query.get('limit')).toBe('500');
    expect(watch?.query.get('allowWatchBookmarks')).toBe('true');
    const timeout = Number(watch?.query.get('timeoutSeconds'));
    expect(timeout).toBeGreaterThanOrEqual(290);
    expect(timeout).toBeLessThanOrEqual(580);
  });

  test('follows what the watch tells, also when bytes arrive one by one', async () => {
    const it = await setUp(emptyList, async (_request, response) => {
      response.writeHead(200);
      const lines =
        watchLine('ADDED', thing('a', 101, 'grün')) +
        watchLine('ADDED', thing('b', 102)) +
        watchLine('MODIFIED', thing('a', 103, '紫🟣')) +
        watchLine('DELETED', thing('b', 104));
      for (const byte of Buffer.from(lines)) {
        response.write(Buffer.of(byte));
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    await it.eventually(() => expect(it.changes).toHaveLength(4));
    expect(it.colors()).toEqual(['a 紫🟣']);
    expect(it.changes).toEqual(['ns/a', 'ns/b', 'ns/a', 'ns/b']);
  });

  test('a reset connection is resumed where it broke, without a list', async () => {
    const it = await setUp(emptyList, (_request, response, nth) => {
      response.writeHead(200);
      if (nth > 1) return response.write(watchLine('ADDED', thing('b', 102)));
      response.write(watchLine('ADDED', thing('a', 101)), () => response.destroy());
      return;
    });
    await it.eventually(() => expect(it.observer.failed).toHaveBeenCalledTimes(1));
    await it.clock.advance(10_000);
    await it.eventually(() => expect(it.colors()).toEqual(['a red', 'b red']));
    expect(it.watchVersions()).toEqual(['100', '101']);
    expect(it.listCount()).toBe(1);
    expect(it.observer.recovered).toHaveBeenCalledTimes(1);
  });

  test.each([
    [
      'as an ERROR event',
      (response: ServerResponse) => {
        response.writeHead(200);
        response.write(watchLine('ERROR', statusBody(410, 'Expired', 'too old resource version')));
      },
    ],
    [
      'as a status',
      (response: ServerResponse) => {
        answerJson(response, 410, statusBody(410, 'Expired', 'too old resource version'));
      },
    ],
  ])('410 %s leads to a new list, and what vanished meanwhile is told', async (_how, refuse) => {
    const it = await setUp(
      (_request, response, nth) => {
        const items = nth === 1 ? [thing('a', 1), thing('b', 2)] : [thing('b', 2), thing('c', 3)];
        answerJson(response, 200, listBody(items, nth === 1 ? '100' : '200'));
      },
      (_request, response, nth) =>
        nth === 1 ? refuse(response) : response.writeHead(200).flushHeaders(),
    );
    await it.eventually(() => expect(it.clock.nextTimerMs).toBeLessThanOrEqual(1_000));
    await it.clock.advance(1_000);
    await it.eventually(() => expect(it.watchVersions()).toEqual(['100', '200']));
    expect(it.colors()).toEqual(['b red', 'c red']);
    expect(it.changes).toEqual(['ns/a', 'ns/b', 'ns/c', 'ns/a']);
    expect(it.observer.failed).not.toHaveBeenCalled();
  });

  test('a server that is away is tried again with growing pauses, then listed anew', async () => {
    let away = false;
    const it = await setUp(
      (_request, response, nth) =>
        away
          ? answerJson(response, 503, statusBody(503, 'ServiceUnavailable', 'starting'))
          : answerJson(response, 200, listBody([thing('a', nth)], `${nth}00`)),
      (_request, response) =>
        away
          ? answerJson(response, 503, statusBody(503, 'ServiceUnavailable', 'starting'))
          : response.writeHead(200).flushHeaders(),
    );
    await it.eventually(() => expect(it.watchVersions()).toHaveLength(1));
    away = true;
    it.server.requests.length = 0;
    await it.clock.advance(WATCH_SILENCE_MS);
    const pauses: number[] = [];
    for (let failure = 1; failure <= 7; failure++) {
      await it.eventually(() => expect(it.observer.failed).toHaveBeenCalledTimes(failure));
      await it.eventually(() => expect(it.clock.nextTimerMs).toBeDefined());
      pauses.push(it.clock.nextTimerMs ?? 0);
      if (failure === 7) away = false;
      await it.clock.advance(it.clock.nextTimerMs ?? 0);
    }
    expect(pauses).toEqual([375, 750, 1_500, 3_000, 6_000, 7_500, 7_500]);
    await it.eventually(() => expect(it.watchVersions().at(-1)).toMatch(/^[1-9]00$/));
    await it.eventually(() => expect(it.colors()).toHaveLength(1));
    expect(it.listCount()).toBeGreaterThanOrEqual(2);
  });

  test('a watch that goes silent is noticed within a minute and resumed from its bookmark', async () => {
    const it = await setUp(emptyList, (_request, response, nth) => {
      response.writeHead(200);
      if (nth === 1)
        response.write(watchLine('BOOKMARK', { metadata: { resourceVersion: '150' } }));
      else response.write(watchLine('ADDED', thing('late', 151)));
    });
    await it.eventually(() => expect(it.watchVersions()).toHaveLength(1));
    await it.eventually(() => expect(it.clock.nextTimerMs).toBe(WATCH_SILENCE_MS));
    await vi.waitFor(() => expect(it.informer.lastActivityMs).toBe(it.clock.monotonicMs()));
    await new Promise((resolve) => setImmediate(resolve));
    await it.clock.advance(59_999);
    await it.eventually(() => expect(it.colors()).toEqual(['late red']));
    expect(it.watchVersions()).toEqual(['100', '150']);
    expect(it.listCount()).toBe(1);
    expect(it.observer.failed).not.toHaveBeenCalled();
  });

  test('a server that closes each watch at once is not asked in a loop', async () => {
    const it = await setUp(emptyList, (_request, response, nth) => {
      response.writeHead(200);
      response.end(watchLine('ADDED', thing('a', 100 + nth)));
    });
    const pauses: (number | undefined)[] = [];
    for (let nth = 1; nth <= 4; nth++) {
      await it.eventually(() => expect(it.watchVersions()).toHaveLength(nth));
      await it.eventually(() => expect(it.clock.nextTimerMs).toBeLessThanOrEqual(10_000));
      pauses.push(it.clock.nextTimerMs);
      await it.clock.advance(it.clock.nextTimerMs ?? 0);
    }
    expect(pauses).toEqual([375, 750, 1_500, 3_000]);
    expect(it.listCount()).toBe(1);
  });

  test('an object that does not parse is told once, skipped, and its good version stays', async () => {
    const broken = { ...thing('a', 102), color: 7 };
    const it = await setUp(
      (_request, response) =>
        answerJson(
          response,
          200,
          listBody([thing('a', 1), { ...thing('x', 2), color: null }], '100'),
        ),
      (_request, response) => {
        response.writeHead(200);
        response.write(watchLine('MODIFIED', broken));
        response.write(watchLine('MODIFIED', { ...broken, metadata: thing('a', 103).metadata }));
        response.write(watchLine('ADDED', thing('b', 104)));
      },
    );
    await it.eventually(() => expect(it.colors()).toEqual(['a red', 'b red']));
    expect(it.observer.unparsable.mock.calls.map((call) => call[1])).toEqual(['ns/x', 'ns/a']);
    expect(it.observer.failed).not.toHaveBeenCalled();
  });

  test('stopping while the server says nothing ends at once and leaves no connection', async () => {
    let closed = false;
    const it = await setUp(emptyList, (_request, response) => {
      response.on('close', () => {
        closed = true;
      });
    });
    await it.eventually(() => expect(it.watchVersions()).toHaveLength(1));
    it.stop.abort(new Error('SIGTERM'));
    await it.done;
    await it.eventually(() => expect(closed).toBe(true));
    expect(it.clock.pendingTimers).toBe(0);
  });

  test('what the agent wrote itself is told as its own, once', async () => {
    let watch: ServerResponse | undefined;
    const it = await setUp(
      (_request, response) => answerJson(response, 200, listBody([thing('a', 7)], '100')),
      (_request, response) => {
        watch = response;
        response.writeHead(200).flushHeaders();
      },
    );
    const told: string[] = [];
    it.informer.subscribe((key, origin) => told.push(`${key} ${origin}`));
    await it.eventually(() => expect(watch).toBeDefined());
    it.informer.observe(thingSchema.parse(thing('a', 101)));
    expect(told).toEqual(['ns/a server', 'ns/a own']);
    watch?.write(watchLine('MODIFIED', thing('a', 101)));
    watch?.write(watchLine('MODIFIED', thing('a', 102)));
    await it.eventually(() => expect(told).toHaveLength(3));
    expect(told[2]).toBe('ns/a server');
  });

  test('a listener that throws disturbs neither the cache nor the others', async () => {
    const it = await setUp(emptyList, (_request, response) => {
      response.writeHead(200);
      response.write(watchLine('ADDED', thing('a', 101)));
      response.write(watchLine('ADDED', thing('b', 102)));
    });
    it.informer.subscribe(() => {
      throw new Error('bug');
    });
    await it.eventually(() => expect(it.changes).toEqual(['ns/a', 'ns/b']));
    expect(it.observer.listenerFailed).toHaveBeenCalledTimes(2);
    expect(it.watchVersions()).toEqual(['100']);
  });
});
