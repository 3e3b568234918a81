/** The closed set of reasons of failed probes, as they stand in the Healthy condition. */

export const PROBE_REASONS = [
  /** The proxy's port is closed. */
  'ConnectionRefused',
  /** The proxy, or the target through it, broke the connection. */
  'ConnectionReset',
  /** No route to the proxy. */
  'Unreachable',
  /** The proxy's host name does not resolve. */
  'HostNotFound',
  /** The deadline of the probe passed. */
  'Timeout',
  /** The proxy does not accept the credentials: a matter of configuration, not of a dead host. */
  'ProxyAuthFailed',
  /** The proxy is there, but answered for itself: it refuses or cannot reach the target. */
  'ProxyError',
  /** A certificate does not verify, of the proxy or of the target behind it. */
  'TlsError',
  /** The target answered with another status than the expected one. */
  'UnexpectedStatus',
  /** What came back is not the echo page. */
  'UnexpectedBody',
  /** Anything else. */
  'ProbeFailed',
] as const;

export type ProbeReason = (typeof PROBE_REASONS)[number];
