/**
 * Writes the CRD manifests from the schemas in `shared/crd`. With `--check` it writes nothing and
 * exits 1 when a committed manifest differs, naming it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import {
  type CustomResourceDefinition,
  providerHealthCrd,
  proxyCrd,
} from '#shared/crd/manifest.ts';

const HEADER = '# Generated from shared/crd by `npm run generate`; do not edit.\n';

/** File name → content of every generated manifest. */
export function crdManifests(): ReadonlyMap<string, string> {
  return new Map([
    ['proxies.yaml', render(proxyCrd())],
    ['providerhealths.yaml', render(providerHealthCrd())],
  ]);
}

/** Names of the manifests in `folder` that are missing or differ from what would be generated. */
export function staleManifests(folder: URL): string[] {
  return [...crdManifests()]
    .filter(([name, content]) => readIfPresent(new URL(name, folder)) !== content)
    .map(([name]) => name);
}

function render(crd: CustomResourceDefinition): string {
  return HEADER + stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false });
}

function readIfPresent(file: URL): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function main(argv: readonly string[]): number {
  const folder = new URL('./', import.meta.url);
  const unknown = argv.find((argument) => argument !== '--check');
  if (unknown !== undefined) {
    console.error(`unknown argument ${unknown}; the only flag is --check`);
    return 2;
  }
  if (argv.includes('--check')) {
    const stale = staleManifests(folder);
    for (const name of stale) {
      console.error(`deploy/crds/${name} is stale: run \`npm run generate\` and commit it`);
    }
    return stale.length === 0 ? 0 : 1;
  }
  for (const [name, content] of crdManifests()) writeFileSync(new URL(name, folder), content);
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = main(process.argv.slice(2));
}
