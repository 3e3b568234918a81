/** Takes secrets out of text that is about to leave the process. */

const RULES: readonly (readonly [RegExp, string])[] = [
  // user:password@ in a URL; the password may hold anything but a slash or blank.
  [/([a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/gi, '$1***@'],
  [/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{4,}/gi, '$1 ***'],
];

/** Shorter values would blank out ordinary words. */
const SECRET_LENGTH_MIN = 6;

export interface Scrubber {
  /** From now on `secret` is replaced wherever it appears. */
  hide(secret: string): void;
  scrub(text: string): string;
}

export function createScrubber(): Scrubber {
  const secrets = new Set<string>();
  return {
    hide(secret) {
      if (secret.length >= SECRET_LENGTH_MIN) secrets.add(secret);
    },
    scrub(text) {
      let clean = text;
      for (const secret of secrets) clean = clean.replaceAll(secret, '***');
      for (const [pattern, replacement] of RULES) clean = clean.replace(pattern, replacement);
      return clean;
    },
  };
}
