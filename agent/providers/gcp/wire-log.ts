/**
 * The wire log: a line for each exchange with the API. Payloads are counted, or shown when that is
 * asked for; user-data is never shown, and headers are left out, as credentials are in them.
 */

export interface Exchange {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Of the answer; undefined when there was none. */
  readonly status: number | undefined;
  readonly durationMs: number;
  /** Texts, '' for none; `answer` is undefined when it is not to be read. */
  readonly request: string;
  readonly answer: string | undefined;
  readonly error?: string;
}

export type WireFields = Readonly<Record<string, unknown>>;

/** Values of instance metadata are elided wherever they are: user-data is one of them. */
const METADATA_KEY = 'metadata';
const PAYLOAD_LENGTH_MAX = 16_384;

/**
 * What a client is given to write the wire log of the provider called `name`: nothing, unless the
 * log is at its most talkative level.
 */
export function wireLog(
  log: { trace(fields: object, message: string): void },
  provider: string,
  config: { readonly logLevel: string; readonly gcpWireLogFullPayloads: boolean },
): { readonly wire?: (exchange: Exchange) => void; readonly readAnswers: boolean } {
  if (config.logLevel !== 'trace') return { readAnswers: false };
  const full = config.gcpWireLogFullPayloads;
  return {
    readAnswers: full,
    wire: (exchange) => log.trace({ provider, ...wireFields(exchange, full) }, 'wire'),
  };
}

/** The fields of an exchange's log line. */
export function wireFields(exchange: Exchange, fullPayloads: boolean): WireFields {
  const { request, answer, ...fields } = exchange;
  if (!fullPayloads) return { ...fields, requestBytes: Buffer.byteLength(request) };
  return {
    ...fields,
    ...(request === '' ? {} : { request: elided(request) }),
    ...(answer === undefined || answer === '' ? {} : { answer: elided(answer) }),
  };
}

/** A payload as text without the values of instance metadata; what is no JSON is only counted. */
export function elided(payload: string): string {
  try {
    const text = JSON.stringify(withoutMetadata(JSON.parse(payload)));
    return text.length > PAYLOAD_LENGTH_MAX ? `${text.slice(0, PAYLOAD_LENGTH_MAX)}…` : text;
  } catch {
    return `<${payload.length} characters, not JSON>`;
  }
}

function withoutMetadata(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMetadata);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === METADATA_KEY ? metadataSummary(inner) : withoutMetadata(inner),
    ]),
  );
}

/** Keys and lengths. */
function metadataSummary(metadata: unknown): unknown {
  const items = isObject(metadata) && Array.isArray(metadata['items']) ? metadata['items'] : [];
  return items.filter(isObject).map(({ key, value }) => {
    const length = typeof value === 'string' ? value.length : 0;
    return `${String(key)}: <${length} characters>`;
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
