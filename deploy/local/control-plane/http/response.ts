/** Answers: encoding, the headers of all of them, warnings and failures. */
import type { ServerResponse } from 'node:http';
import { stringify as stringifyYaml } from 'yaml';
import { internalError, StatusError } from '../api/status-error.ts';
import type { JsonObject } from '../json.ts';
import { type Encoding, JSON_TYPE, YAML_TYPE } from './negotiation.ts';

/** No proxy keeps what depends on who asks. */
export const COMMON_HEADERS = { 'cache-control': 'no-cache, private' };

/** More than a person reads; headers are bounded on the way. */
const WARNINGS_MAX = 20;
const WARNING_CHARS_MAX = 2048;

export interface Answer {
  readonly code?: number;
  readonly object: JsonObject;
  readonly encoding?: Encoding;
  readonly warnings?: readonly string[];
  /** Absent: that of the encoding. */
  readonly contentType?: string;
}

/** Answers with an object in its encoding, and with the first of the warnings. */
export function sendObject(response: ServerResponse, answer: Answer): void {
  const { object, encoding = 'json', code = 200, warnings = [] } = answer;
  const text = encoding === 'yaml' ? stringifyYaml(object) : `${JSON.stringify(object)}\n`;
  const type = answer.contentType ?? (encoding === 'yaml' ? YAML_TYPE : JSON_TYPE);
  if (warnings.length > 0)
    response.setHeader('warning', warnings.slice(0, WARNINGS_MAX).map(warningHeader));
  send(response, code, type, text);
}

export function sendText(response: ServerResponse, text: string, code = 200): void {
  send(response, code, 'text/plain; charset=utf-8', text);
}

/** The one place where a whole answer is written: its length is known, so connections stay open. */
export function send(
  response: ServerResponse,
  code: number,
  contentType: string,
  body: string | Uint8Array,
): void {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  response.writeHead(code, {
    ...COMMON_HEADERS,
    'content-type': contentType,
    'content-length': bytes.length,
  });
  response.end(bytes);
}

/** Any failure as a Status; what is not a StatusError is a fault of the server. */
export function statusOf(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  return internalError(error instanceof Error ? error.message : String(error));
}

/** Answers with a failure; the caller has made sure that nothing was written before. */
export function sendError(response: ServerResponse, error: StatusError): void {
  if (error.code === 401) response.setHeader('www-authenticate', 'Bearer');
  // The rest of a body that was not read would be taken for the next request.
  if (error.code === 413) response.setHeader('connection', 'close');
  sendObject(response, { code: error.code, object: error.status });
}

/** RFC 7234 warn-value; headers are bytes, so text beyond ASCII goes as UTF-8. */
function warningHeader(text: string): string {
  const line = text.slice(0, WARNING_CHARS_MAX).replace(/[\p{Cc}]+/gu, ' ');
  const quoted = line.replace(/["\\]/g, (character) => `\\${character}`);
  return Buffer.from(`299 - "${quoted}"`, 'utf8').toString('latin1');
}
