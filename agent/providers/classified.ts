/** What every provider does around each of its calls: one log line, and failures with a class. */
import { ProviderError, type ProviderErrorClass, type ProviderOp } from './errors.ts';

/** Receives one line for each call; never holds user-data or credentials. */
export interface ProviderLog {
  debug(fields: object, message: string): void;
}

/** Runs a call of the contract; `id` is for the log. */
export type Classified = <T>(op: ProviderOp, id: string, call: () => Promise<T>) => Promise<T>;

/** Makes a ProviderError of whatever was thrown; one that is already is passed through. */
export type Classify = (
  error: unknown,
  at: { readonly op: ProviderOp; readonly provider: string },
) => ProviderError;

/**
 * @param classOf the one place of a provider that decides on the class of what its backend throws
 * @param messageLengthMax characters of its message that are taken over
 */
export function classifier(
  classOf: (error: unknown, op: ProviderOp) => ProviderErrorClass,
  messageLengthMax = Number.POSITIVE_INFINITY,
): Classify {
  return (error, at) => {
    if (error instanceof ProviderError) return error;
    const message = error instanceof Error ? error.message : String(error);
    const told = message.slice(0, messageLengthMax);
    return new ProviderError(classOf(error, at.op), at, told, { cause: error });
  };
}

export function classified(
  provider: string,
  classify: Classify,
  log: ProviderLog | undefined,
): Classified {
  return async (op, id, call) => {
    try {
      const answer = await call();
      log?.debug({ provider, op, id, ...summaryOf(answer) }, 'provider call');
      return answer;
    } catch (error) {
      const classed = classify(error, { op, provider });
      const { class: errorClass, message } = classed;
      log?.debug({ provider, op, id, errorClass, error: message }, 'provider call failed');
      throw classed;
    }
  };
}

/** What a log line tells of an answer. */
function summaryOf(answer: unknown): object {
  if (Array.isArray(answer)) return { count: answer.length };
  if (typeof answer !== 'object' || answer === null || !('state' in answer)) return {};
  return { state: answer.state, detail: 'detail' in answer ? answer.detail : undefined };
}
