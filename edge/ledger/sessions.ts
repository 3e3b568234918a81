/**
 * Which proxy each session key gets. A binding is written when it changes; which of them was used
 * last is known in memory only, and decides what goes when there are too many.
 */
import { LruMap } from './lru-map.ts';
import { type Change, type ProxyRecord, SESSIONS_MAX, type SessionRow } from './model.ts';

export class Sessions {
  readonly #rows = new LruMap<string, SessionRow>(SESSIONS_MAX);
  readonly #byProxy = new Map<string, Set<string>>();

  constructor(rows: readonly SessionRow[]) {
    for (const row of rows) this.#set(row);
  }

  find(key: string): SessionRow | undefined {
    return this.#rows.get(key);
  }

  /** Binds the session to the proxy. */
  bind(key: string, proxy: ProxyRecord, token: number): Change[] {
    const cluster = proxy.cluster.name;
    const { uid } = proxy.entry;
    const known = this.#rows.get(key);
    if (known?.cluster === cluster && known.uid === uid) return [];
    return this.#put({ key, cluster, uid, token });
  }

  /** The session goes on to another shard. */
  passOn(key: string): Change[] {
    const known = this.#rows.get(key);
    return known?.uid === null ? [] : this.#put({ key, cluster: '', uid: null, token: 0 });
  }

  /** The proxy is gone, and with it what was bound to it. */
  abandon(proxy: ProxyRecord): Change[] {
    const name = proxyKey(proxy.cluster.name, proxy.entry.uid);
    return [...(this.#byProxy.get(name) ?? [])].map((key) => this.#delete(key));
  }

  #put(row: SessionRow): Change[] {
    const dropped = this.#set(row);
    return [...(dropped === undefined ? [] : [dropped]), { kind: 'put-session', row }];
  }

  #set(row: SessionRow): Change | undefined {
    this.#unlink(this.#rows.peek(row.key));
    const dropped = this.#rows.set(row.key, row);
    if (row.uid !== null) {
      const name = proxyKey(row.cluster, row.uid);
      const keys = this.#byProxy.get(name) ?? new Set();
      this.#byProxy.set(name, keys.add(row.key));
    }
    if (dropped === undefined) return undefined;
    this.#unlink(dropped[1]);
    return { kind: 'delete-session', key: dropped[0] };
  }

  #delete(key: string): Change {
    this.#unlink(this.#rows.peek(key));
    this.#rows.delete(key);
    return { kind: 'delete-session', key };
  }

  #unlink(row: SessionRow | undefined): void {
    if (row === undefined || row.uid === null) return;
    const name = proxyKey(row.cluster, row.uid);
    const keys = this.#byProxy.get(name);
    keys?.delete(row.key);
    if (keys?.size === 0) this.#byProxy.delete(name);
  }
}

function proxyKey(cluster: string, uid: string): string {
  return `${cluster}/${uid}`;
}
