/** Reduces what a crawler calls its target to the name that cooldowns are kept under. */
import { TARGET_LENGTH_MAX } from './lease.ts';

/**
 * Lower-case ASCII host name of a host name or a URL: no scheme, port, path or trailing dot.
 * Returns undefined for what has no host, or one longer than 253 characters.
 */
export function normalizeTarget(target: string): string | undefined {
  const text = target.trim();
  // The URL parser would skip the slashes and take a path's first part for a host.
  if (/^[/\\]/.test(text)) return undefined;
  const url = URL.parse(text.includes('://') ? text : `http://${text}`);
  if (url === null) return undefined;
  const host = url.hostname.toLowerCase().replace(/\.$/, '');
  if (host === '' || host.length > TARGET_LENGTH_MAX) return undefined;
  return host;
}
