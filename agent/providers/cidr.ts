/** Ranges of addresses, as configuration blocks take them. */
import { isIP } from 'node:net';

/** An address, or a range such as 10.0.0.0/8 or fc00::/7. */
export function isCidr(text: string): boolean {
  const [address, prefix, ...rest] = text.split('/');
  if (address === undefined || rest.length > 0) return false;
  const family = isIP(address);
  if (family === 0 || address.includes('%')) return false;
  if (prefix === undefined) return true;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128);
}
