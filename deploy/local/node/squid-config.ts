/**
 * Fits a Squid configuration that was written for a container of its own to a process that
 * shares the machine: it listens on the pod's address only, leaves by it, and keeps to the pod's
 * files. Everything else in the configuration is left as it is.
 */

export interface SquidPlace {
  /** Address of the pod. */
  readonly ip: string;
  /** Name that Squid calls itself by. */
  readonly hostname: string;
  /** Where the pod's mounts really are; longest container path first. */
  readonly mounts: readonly { readonly containerPath: string; readonly hostPath: string }[];
}

/** Directives that only make sense once in a container, with what takes their place here. */
const REPLACED: Readonly<Record<string, string>> = { pid_filename: 'none' };

/** What the image's defaults would do on the machine at large, unless the configuration says. */
const DEFAULTS: Readonly<Record<string, string>> = {
  access_log: 'stdio:/dev/stdout',
  cache_log: '/dev/stderr',
  coredump_dir: 'none',
  netdb_filename: 'none',
  pinger_enable: 'off',
};

const LISTENING = new Set(['http_port', 'https_port']);

/** Rewrites a whole configuration. */
export function pinSquidConfig(text: string, place: SquidPlace): string {
  const seen = new Set<string>();
  const lines = text.split('\n').map((line) => {
    const directive = /^\s*([a-z_]+)(?=\s|$)/.exec(line)?.[1];
    if (directive === undefined) return line;
    seen.add(directive);
    return pinLine(directive, line, place);
  });
  const added = Object.entries({ ...REPLACED, ...DEFAULTS, visible_hostname: place.hostname })
    .filter(([directive]) => !seen.has(directive))
    .map(([directive, value]) => `${directive} ${value}`);
  return [...lines, ...added, `tcp_outgoing_address ${place.ip}`, ''].join('\n');
}

function pinLine(directive: string, line: string, place: SquidPlace): string {
  const replacement = REPLACED[directive];
  if (replacement !== undefined) return `${directive} ${replacement}`;
  if (LISTENING.has(directive)) return pinPort(line, place.ip);
  return mapPaths(line, place.mounts);
}

/** `http_port 3128 …`, `http_port 0.0.0.0:3128 …` or `http_port [::]:3128 …`. */
function pinPort(line: string, ip: string): string {
  return line.replace(
    /^(\s*https?_port\s+)(?:(?:\[[^\]\s]*\]|[^\s:]+):)?(\d+)(?=\s|$)/,
    (_match, head: string, port: string) => `${head}${ip}:${port}`,
  );
}

/** Replaces container paths below a mount by the real ones, at the borders of path names. */
export function mapPaths(text: string, mounts: SquidPlace['mounts']): string {
  let mapped = text;
  for (const { containerPath, hostPath } of mounts) {
    const escaped = containerPath.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const pattern = new RegExp(`(^|[\\s"'=:])${escaped}(?=/|[\\s"']|$)`, 'g');
    mapped = mapped.replace(pattern, (_match, before: string) => `${before}${hostPath}`);
  }
  return mapped;
}
