/** The kubelet's probes of a container: by TCP connect or HTTP GET, with its thresholds. */
import { connect } from 'node:net';
import { Agent, request } from 'undici';
import type { Clock } from '#shared/clock.ts';
import type { Container, Probe } from './pod.ts';

/** Readiness begins as false and liveness as true, until as many results in a row say otherwise. */
export interface ProbeVerdict {
  readonly ok: boolean;
  readonly streak: number;
}

/** The verdict after one more result (pure). */
export function judge(
  probe: Pick<Probe, 'successThreshold' | 'failureThreshold'>,
  verdict: ProbeVerdict,
  success: boolean,
): ProbeVerdict {
  if (success === verdict.ok) return { ok: verdict.ok, streak: 0 };
  const streak = verdict.streak + 1;
  const needed = success ? probe.successThreshold : probe.failureThreshold;
  return streak >= needed ? { ok: success, streak: 0 } : { ok: verdict.ok, streak };
}

export interface ProbeDeps {
  readonly clock: Clock;
  /** One attempt; never rejects. */
  attempt(probe: Probe, signal: AbortSignal): Promise<boolean>;
}

/** Pause until the first success: what starts in no time is then ready in no time. */
const EAGER_PAUSE_MS = 200;

/** Probes until `signal` aborts and tells each change of the verdict. */
export async function probeLoop(
  { clock, attempt }: ProbeDeps,
  probe: Probe,
  initial: boolean,
  onChange: (ok: boolean) => void,
  signal: AbortSignal,
): Promise<void> {
  let verdict: ProbeVerdict = { ok: initial, streak: 0 };
  let pauseMs = probe.initialDelaySeconds * 1000;
  const eager = !initial;
  let everOk = initial;
  while (!signal.aborted) {
    await clock.sleep(pauseMs, signal).catch(() => {});
    if (signal.aborted) return;
    const success = await attempt(probe, signal);
    if (signal.aborted) return;
    const next = judge(probe, verdict, success);
    if (next.ok !== verdict.ok) onChange(next.ok);
    verdict = next;
    everOk ||= next.ok;
    pauseMs = eager && !everOk ? EAGER_PAUSE_MS : probe.periodSeconds * 1000;
  }
}

const PORT_MAX = 65535;

/** Attempts against a container at `ip`; named ports are those of the container. */
export function networkAttempt(ip: string, container: Container): ProbeDeps['attempt'] {
  return async (probe, signal) => {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(probe.timeoutSeconds * 1000)]);
    const target = probe.tcpSocket ?? probe.httpGet;
    const port = target === undefined ? undefined : portNumber(target.port, container);
    if (target === undefined || port === undefined) return false;
    const host = target.host ?? ip;
    if (port < 1 || port > PORT_MAX) return false;
    return probe.httpGet === undefined
      ? canConnect(host, port, deadline)
      : answersWell(probe.httpGet, host, port, deadline);
  };
}

function portNumber(port: number | string, container: Container): number | undefined {
  if (typeof port === 'number') return port;
  return container.ports.find((one) => one.name === port)?.containerPort;
}

function canConnect(host: string, port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (ok: boolean) => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      resolve(ok);
    };
    const onAbort = () => end(false);
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}

type HttpGet = NonNullable<Probe['httpGet']>;

async function answersWell(
  get: HttpGet,
  host: string,
  port: number,
  signal: AbortSignal,
): Promise<boolean> {
  // Like the kubelet, which does not verify the certificate of what it probes.
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  try {
    const url = `${get.scheme.toLowerCase()}://${host}:${port}${get.path}`;
    const response = await request(url, { dispatcher, signal });
    await response.body.dump();
    return response.statusCode >= 200 && response.statusCode < 400;
  } catch {
    return false;
  } finally {
    await dispatcher.destroy();
  }
}
