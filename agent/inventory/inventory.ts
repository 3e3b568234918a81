/** The way from the cache to the edge and back, made together; the face of this folder. */
import { readFile } from 'node:fs/promises';
import type { Clock, Random } from '#shared/clock.ts';
import { createEdgeClient } from './edge-client.ts';
import type { Feedback } from './feedback.ts';
import { createPublisher, type Publisher, type PublisherObserver } from './publisher.ts';
import { createInventoryBuilder, type SnapshotSources } from './snapshot.ts';

/** The agent's token for the edge, or the file that it is read from for each request. */
export type TokenSource = { readonly value: string } | { readonly file: string };

export interface InventoryDeps extends Omit<SnapshotSources, 'proxies'> {
  readonly proxies: { list(): SnapshotSources['proxies'] };
  readonly edgeUrl: string;
  readonly clusterName: string;
  readonly token: TokenSource;
  /** Where the edge's answers go. */
  readonly feedback: Feedback;
  /** Told of each token before it is used, so that it can be kept out of logs. */
  readonly onToken: (token: string) => void;
  readonly term: number;
  /** New at each start of the process. */
  readonly session: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: PublisherObserver;
}

export interface InventoryPublishing extends Publisher {
  close(): Promise<void>;
}

export function openInventory(deps: InventoryDeps): InventoryPublishing {
  const { clock, random, observer, term, session, edgeUrl } = deps;
  const { verdict, credentials, feedback } = deps;
  const build = createInventoryBuilder();
  const token = tokenReader(deps.token, deps.onToken);
  const edge = createEdgeClient({ clock, edgeUrl, cluster: deps.clusterName, token });
  const publisher = createPublisher({
    edge,
    inventory: () => build({ proxies: deps.proxies.list(), verdict, credentials }),
    feedback,
    clock,
    random,
    session,
    term,
    observer,
  });
  return {
    notify: () => publisher.notify(),
    remaining: (uid) => publisher.remaining(uid),
    run: (signal) => publisher.run(signal),
    close: () => edge.close(),
  };
}

/** A rotated token file needs no restart. */
function tokenReader(source: TokenSource, onToken: (token: string) => void) {
  return async () => {
    const text = 'value' in source ? source.value : await readFile(source.file, 'utf8');
    const token = text.trim();
    onToken(token);
    return token;
  };
}
