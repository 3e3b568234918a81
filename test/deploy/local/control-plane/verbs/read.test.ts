import { describe, expect, it } from 'vitest';
import type { WatchEvent, WatchOptions } from '#deploy/local/control-plane/api/verbs/verbs.ts';
import { isJsonObject, type JsonObject } from '#deploy/local/control-plane/json.ts';
import { settle } from '#test/fakes/clock.ts';
import { at, createTestControlPlane, pod, refusal } from './control-plane.ts';

const setUp = (options: { historyMax?: number } = {}) => {
  const plane = createTestControlPlane(options);
  const maps = plane.resource('', 'configmaps');
  const create = (name: string, labels: JsonObject = {}) =>
    plane.verbs.create(maps, 'default', { metadata: { name, labels } }, {}).object;
  const watch = (watchOptions: WatchOptions, signal = new AbortController().signal) => {
    const events: string[] = [];
    const all: WatchEvent[] = [];
    const iterable = plane.verbs.watch(maps, watchOptions, signal);
    const done = (async () => {
      for await (const event of iterable) {
        all.push(event);
        events.push(`${event.type} ${at(event.object, 'metadata', 'name') ?? ''}`.trim());
      }
    })();
    return { events, all, done };
  };
  return { ...plane, maps, create, watch };
};

const namesOf = (list: JsonObject) => {
  const items = Array.isArray(list['items']) ? list['items'] : [];
  return items.filter(isJsonObject).map((item) => at(item, 'metadata', 'name'));
};

describe('list', () => {
  it('shows the state of the first page on every page', () => {
    const { verbs, maps, create } = setUp();
    for (const name of ['a', 'b', 'c', 'd']) create(name);
    const first = verbs.list(maps, { limit: 2 });
    expect(namesOf(first)).toEqual(['a', 'b']);
    expect(at(first, 'metadata', 'remainingItemCount')).toBe(2);
    verbs.delete(maps, 'default', 'c', {});
    create('cc');
    const token = String(at(first, 'metadata', 'continue'));
    const second = verbs.list(maps, { limit: 2, continue: token });
    expect(namesOf(second)).toEqual(['c', 'd']);
    expect(second['metadata']).toEqual({
      resourceVersion: at(first, 'metadata', 'resourceVersion'),
    });
    expect(second).toMatchObject({ kind: 'ConfigMapList', apiVersion: 'v1' });
  });

  it('answers 410 when the state of a page is compacted', () => {
    const { verbs, maps, create, store } = setUp();
    for (const name of ['a', 'b']) create(name);
    const token = String(at(verbs.list(maps, { limit: 1 }), 'metadata', 'continue'));
    create('c');
    store.compact();
    const { status } = refusal(() => verbs.list(maps, { continue: token }));
    expect(status).toMatchObject({ code: 410, reason: 'Expired' });
  });

  it.each([
    ['app=x', ['a', 'c']],
    ['app!=x', ['b', 'd']],
    ['app in (x,y)', ['a', 'b', 'c']],
    ['app notin (x),app', ['b']],
    ['!app', ['d']],
    ['app=x,tier', ['c']],
    ['tier > 2', ['c']],
    ['', ['a', 'b', 'c', 'd']],
  ])('selects by labels: %s', (labelSelector, names) => {
    const { verbs, maps, create } = setUp();
    create('a', { app: 'x' });
    create('b', { app: 'y' });
    create('c', { app: 'x', tier: '3' });
    create('d');
    expect(namesOf(verbs.list(maps, { labelSelector }))).toEqual(names);
  });

  it('selects by fields, and only by those that the resource has', () => {
    const { verbs, resource } = setUp();
    const pods = resource('', 'pods');
    verbs.create(pods, 'default', pod('a', { nodeName: 'n' }), {});
    verbs.create(pods, 'default', pod('b'), {});
    expect(namesOf(verbs.list(pods, { fieldSelector: 'spec.nodeName=n' }))).toEqual(['a']);
    expect(namesOf(verbs.list(pods, { fieldSelector: 'metadata.name!=a' }))).toEqual(['b']);
    expect(refusal(() => verbs.list(pods, { fieldSelector: 'spec.x=1' })).code).toBe(400);
    expect(refusal(() => verbs.list(pods, { labelSelector: 'a in' })).code).toBe(400);
  });

  it('refuses a resourceVersion of the future', () => {
    const { verbs, maps } = setUp();
    const { status } = refusal(() => verbs.list(maps, { resourceVersion: '9999' }));
    expect(status).toMatchObject({ code: 504, reason: 'Timeout' });
  });
});

describe('watch', () => {
  it('starts with everything and goes on with changes', async () => {
    const { verbs, maps, create, watch } = setUp();
    create('a');
    const { events } = watch({ resourceVersion: '0' });
    create('b');
    verbs.delete(maps, 'default', 'a', {});
    await settle();
    expect(events).toEqual(['ADDED a', 'ADDED b', 'DELETED a']);
  });

  it('continues after a resourceVersion without a gap', async () => {
    const { verbs, maps, create, watch } = setUp();
    const first = create('a');
    create('b');
    const resourceVersion = String(at(first, 'metadata', 'resourceVersion'));
    const { events } = watch({ resourceVersion });
    verbs.patch(maps, 'default', 'b', 'merge', { data: { k: 'v' } }, {});
    await settle();
    expect(events).toEqual(['ADDED b', 'MODIFIED b']);
  });

  it('turns leaving and entering a selection into DELETED and ADDED', async () => {
    const { verbs, maps, create, watch } = setUp();
    create('a', { on: 'yes' });
    const { events, all } = watch({ labelSelector: 'on=yes' });
    for (const on of ['no', 'never', 'yes']) {
      verbs.patch(maps, 'default', 'a', 'merge', { metadata: { labels: { on } } }, {});
    }
    await settle();
    expect(events).toEqual(['ADDED a', 'DELETED a', 'ADDED a']);
    expect(at(all[1]?.object ?? {}, 'metadata', 'labels', 'on')).toBe('yes');
  });

  it('tells 410 when the start is compacted, and ends', async () => {
    const { create, watch, store } = setUp();
    create('a');
    store.compact();
    const { all, done } = watch({ resourceVersion: '1' });
    await done;
    expect(all).toMatchObject([{ type: 'ERROR', object: { code: 410, reason: 'Expired' } }]);
  });

  it('sends bookmarks each minute and at its end', async () => {
    const { watch, clock, store } = setUp();
    const resourceVersion = String(store.revision);
    const timers = clock.pendingTimers;
    const { all, events, done } = watch({
      resourceVersion,
      allowWatchBookmarks: true,
      timeoutSeconds: 90,
    });
    await clock.advance(61_000);
    expect(events).toEqual(['BOOKMARK']);
    await clock.advance(30_000);
    await done;
    expect(events).toEqual(['BOOKMARK', 'BOOKMARK']);
    expect(all[0]?.object).toEqual({
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { resourceVersion },
    });
    expect(clock.pendingTimers).toBe(timers);
  });

  it('marks the end of the initial events', async () => {
    const { create, watch } = setUp();
    create('a');
    const { all, events } = watch({
      sendInitialEvents: true,
      allowWatchBookmarks: true,
      resourceVersionMatch: 'NotOlderThan',
    });
    await settle();
    expect(events).toEqual(['ADDED a', 'BOOKMARK']);
    expect(all[1]?.object).toMatchObject({
      metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } },
    });
  });

  it('ends when aborted and leaves nothing behind', async () => {
    const { create, watch, clock } = setUp();
    const timers = clock.pendingTimers;
    const aborter = new AbortController();
    const { events, done } = watch({}, aborter.signal);
    aborter.abort();
    await done;
    create('a');
    expect(events).toEqual([]);
    expect(clock.pendingTimers).toBe(timers);
  });

  it('starts with more objects than it buffers changes', async () => {
    const { store, maps, verbs } = setUp();
    const count = 10_001;
    for (let index = 0; index < count; index++) {
      const name = `m${index}`;
      store.put({ resource: 'configmaps', namespace: 'default', name }, { metadata: { name } });
    }
    const aborter = new AbortController();
    const iterator = verbs.watch(maps, {}, aborter.signal)[Symbol.asyncIterator]();
    for (let index = 0; index < count; index++) {
      expect((await iterator.next()).value?.type).toBe('ADDED');
    }
    aborter.abort();
    expect((await iterator.next()).done).toBe(true);
  });

  it('takes resourceVersionMatch with sendInitialEvents alone', () => {
    const { maps, verbs } = setUp();
    const options = { resourceVersion: '1', resourceVersionMatch: 'NotOlderThan' };
    const error = refusal(() => verbs.watch(maps, options, new AbortController().signal));
    expect(error.message).toContain('forbidden for watch unless sendInitialEvents is provided');
  });

  it('fails a reader that is too slow', async () => {
    const { store, maps, verbs } = setUp();
    const iterable = verbs.watch(maps, {}, new AbortController().signal);
    const ref = { resource: 'configmaps', namespace: 'default', name: 'a' };
    for (let turn = 0; turn <= 10_000; turn++) store.put(ref, { metadata: { name: 'a' } });
    const types: string[] = [];
    for await (const { type } of iterable) types.push(type);
    expect(types).toEqual(['ERROR']);
  });
});
