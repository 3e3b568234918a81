/** SIGTERM and SIGINT as an abort: the first one asks for a clean stop, the second insists. */

/** What shells report of a process that an interrupt ended (128 + SIGINT). */
const EXIT_CODE_INSISTED = 130;

/** `onStop` is told of the first signal; a second one ends the process at once. */
export function stopOnSignals(onStop: (signal: string) => void): AbortController {
  const stop = new AbortController();
  const onSignal = (signal: string) => {
    if (stop.signal.aborted) process.exit(EXIT_CODE_INSISTED);
    onStop(signal);
    stop.abort(new Error(`stopped by ${signal}`));
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return stop;
}
