/** Where the edge's time goes, by V8's own profiler: per function and per file of ours. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SCRIPT_FILE } from '#deploy/local/edge/worker-config.ts';
import { type CpuProfile, openInspector, type ProfileNode } from '#test/workerd/inspector.ts';
import { startEdgeServer } from './edge-server.ts';
import type { Generator, RunOptions } from './generator.ts';

const INTERVAL_US = 200;
const FUNCTIONS_SHOWN = 30;
const FILES_SHOWN = 20;

export interface ProfileOptions extends RunOptions {
  readonly dir: string;
  readonly proxies: number;
  readonly shards: number;
  readonly root: string | undefined;
}

/** Lines that say which functions and files used how much of the time and of each request. */
export async function profileEdge(
  generator: Generator,
  { dir, proxies, shards, root, ...run }: ProfileOptions,
): Promise<string[]> {
  const shape = { proxies, shards, root, inspect: true };
  await using server = await startEdgeServer({ dir, hold: generator.hold }, shape);
  const { inspectorPort, logFile } = server.runtime;
  if (inspectorPort === undefined) throw new Error('the runtime has no inspector');
  await generator.run(server, run);
  using inspector = await openInspector(inspectorPort);
  let requests = 0;
  const profile = await inspector.profile(INTERVAL_US, async () => {
    const { pairs, cpuUsPerRequest } = await generator.run(server, { ...run, warmUpMs: 0 });
    requests = pairs * 2;
    return cpuUsPerRequest;
  });
  const fileOf = filesByLine(readFileSync(join(dirname(logFile), SCRIPT_FILE), 'utf8'));
  return describe(profile, requests, fileOf);
}

function describe(
  profile: CpuProfile,
  requests: number,
  fileOf: (line: number) => string,
): string[] {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map(
    profile.nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node] as const)),
  );
  const functions = new Map<string, number>();
  const files = new Map<string, number>();
  let totalUs = 0;
  for (const [index, id] of profile.samples.entries()) {
    const node = nodes.get(id);
    // A sample lasts until the next one.
    const us = profile.timeDeltas[index + 1] ?? 0;
    if (node === undefined) continue;
    totalUs += us;
    const { name, file } = placeOf(node, parents, fileOf);
    functions.set(name, (functions.get(name) ?? 0) + us);
    files.set(file, (files.get(file) ?? 0) + us);
  }
  const table = (of: ReadonlyMap<string, number>, shown: number) =>
    [...of]
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, shown)
      .map(([name, us]) => {
        const share = `${((100 * us) / totalUs).toFixed(1)} %`.padStart(7);
        return `${share} ${(us / requests).toFixed(2).padStart(8)} µs/request  ${name}`;
      });
  return [
    `${requests} requests in ${(totalUs / 1e6).toFixed(2)} s; self time by function:`,
    ...table(functions, FUNCTIONS_SHOWN),
    'by file:',
    ...table(files, FILES_SHOWN),
  ];
}

/** The runtime's and the engine's own functions have no address: they count for who calls them. */
function placeOf(
  node: ProfileNode,
  parents: ReadonlyMap<number, ProfileNode>,
  fileOf: (line: number) => string,
): { readonly name: string; readonly file: string } {
  const { functionName, url, lineNumber } = node.callFrame;
  const name = functionName === '' ? '(anonymous)' : functionName;
  if (url !== '') {
    const file = url.endsWith(SCRIPT_FILE) ? fileOf(lineNumber) : url;
    return { name: `${name}  ${file}:${lineNumber + 1}`, file };
  }
  const parent = parents.get(node.id);
  if (parent === undefined || parent.callFrame.functionName === '(root)') {
    return { name, file: name };
  }
  const caller = placeOf(parent, parents, fileOf);
  return { name: `${name} of ${caller.name}`, file: caller.file };
}

/** A bundle names above each module the file that it is of. */
function filesByLine(bundle: string): (line: number) => string {
  const starts = bundle.split('\n').flatMap((text, line) => {
    const [, file] = /^\s*\/\/ (\S+\.[cm]?[jt]s)$/.exec(text) ?? [];
    return file === undefined ? [] : [{ line, file: file.replace(/^.*node_modules\//, '') }];
  });
  return (line) => starts.findLast((start) => start.line <= line)?.file ?? '(bundle)';
}
