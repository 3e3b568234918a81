/**
 * Every answer is made here, at one go, since adding a header to one that is made costs as much as
 * making it.
 */
import type { EdgeContext } from './context.ts';

type Headers = Readonly<Record<string, string>>;

/** Answers with the id of its request, and for no cache to keep. */
export function answer(
  c: EdgeContext,
  status: number,
  body: BodyInit | null,
  headers: Headers = {},
): Response {
  return new Response(body, {
    status,
    headers: { 'x-request-id': c.get('requestId'), 'cache-control': 'no-store', ...headers },
  });
}

/** The same with a value, or with a text or stream that is JSON already. */
export function answerJson(
  c: EdgeContext,
  status: number,
  value: object | string | ReadableStream,
  headers: Headers = {},
): Response {
  const isMade = typeof value === 'string' || value instanceof ReadableStream;
  const body = isMade ? value : JSON.stringify(value);
  return answer(c, status, body, { 'content-type': 'application/json', ...headers });
}
