/** What every provider does around each of its calls: one log line, and failures with a class. */
import type { ProviderError, ProviderOp } from './errors.ts';

/** Receives one line for each call; never holds user-data or credentials. */
export interface ProviderLog {
  debug(fields: object, message: string): void;
}

/** Runs a call of the contract; `id` is for the log. */
export type Classified = <T>(op: ProviderOp, id: string, call: () => Promise<T>) => Promise<T>;

/** @param classify makes a ProviderError of whatever was thrown. */
export function classified(
  provider: string,
  classify: (error: unknown, at: { op: ProviderOp; provider: string }) => ProviderError,
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
