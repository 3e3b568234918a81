/**
 * Which proxies rest for which targets, and until when: what the cooldowns of egress addresses mean
 * for the proxies behind them. Follows from the cooldowns and the inventory, and is never stored.
 */
import { EVERY_TARGET } from './egress.ts';
import type { ProxyRecord } from './model.ts';

export class Rests {
  readonly #byTarget = new Map<string, Map<ProxyRecord, number>>();

  /** Until when the proxy rests for exactly this target (or `EVERY_TARGET`); 0 when it does not. */
  untilMs(proxy: ProxyRecord, target: string): number {
    return this.#byTarget.get(target)?.get(proxy) ?? 0;
  }

  /** Whether the proxy may not be given out for the target; `null` asks for none in particular. */
  isResting(proxy: ProxyRecord, target: string | null): boolean {
    if (this.untilMs(proxy, EVERY_TARGET) > 0) return true;
    return target !== null && this.untilMs(proxy, target) > 0;
  }

  /** Proxies that rest for exactly this target; undefined of none. */
  of(target: string): ReadonlyMap<ProxyRecord, number> | undefined {
    return this.#byTarget.get(target);
  }

  /** 0 ends the rest. Returns whether anything changed. */
  set(proxy: ProxyRecord, target: string, untilMs: number): boolean {
    const proxies = this.#byTarget.get(target);
    if ((proxies?.get(proxy) ?? 0) === untilMs) return false;
    if (untilMs > 0) {
      if (proxies === undefined) this.#byTarget.set(target, new Map([[proxy, untilMs]]));
      else proxies.set(proxy, untilMs);
    } else {
      proxies?.delete(proxy);
      if (proxies?.size === 0) this.#byTarget.delete(target);
    }
    return true;
  }
}
