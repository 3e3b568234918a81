/** Hash of what a new machine is needed for: when it changes, the machine is replaced. */
import { createHash } from 'node:crypto';
import type { ProxySpec } from '#shared/crd/proxy.ts';

/** 128 bits; enough to tell apart and short enough to read in an annotation. */
const HASH_CHARACTERS = 32;

/**
 * Covers placement, the content of the user-data and the port. Attributes, limits, health checks
 * and the like are changed without a new machine; mode and provider cannot change. What goes in,
 * and in which form, must never change: a new form replaces every machine there is.
 */
export function specHash(spec: ProxySpec, cloudInit: string | undefined): string {
  const { region, zone, machineType, image } = spec.placement ?? {};
  // Undefined fields vanish, so an empty placement is no placement.
  const content = JSON.stringify({ region, zone, machineType, image, port: spec.port, cloudInit });
  return createHash('sha256').update(content).digest('hex').slice(0, HASH_CHARACTERS);
}
