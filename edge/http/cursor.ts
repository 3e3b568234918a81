/** The opaque text of a place in a listing. */
import { z } from 'zod';
import type { Position } from '#edge/object/rpc.ts';

const positionSchema = z.strictObject({
  cluster: z.string(),
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
});
const BASE64URL = { alphabet: 'base64url', omitPadding: true } as const;

export function encodeCursor(position: Position): string {
  return new TextEncoder().encode(JSON.stringify(position)).toBase64(BASE64URL);
}

/** undefined when the text is not one of `encodeCursor`. */
export function decodeCursor(cursor: string): Position | undefined {
  try {
    const bytes = Uint8Array.fromBase64(cursor, { alphabet: 'base64url' });
    return positionSchema.parse(
      JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)),
    );
  } catch {
    return undefined;
  }
}
