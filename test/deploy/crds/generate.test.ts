import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { crdManifests, staleManifests } from '#deploy/crds/generate.ts';
import { customResourceDefinitions } from '#shared/crd/manifest.ts';

const COMMITTED = new URL('../../../deploy/crds/', import.meta.url);

describe('the committed CRD manifests', () => {
  it('are what the schemas generate', () => {
    expect(staleManifests(COMMITTED)).toEqual([]);
  });

  it('read back as the objects that they were written from', () => {
    const read = [...crdManifests().values()].map((content) => parse(content));
    expect(read).toEqual(JSON.parse(JSON.stringify(customResourceDefinitions())));
  });

  it('spell every value out: no anchors, no aliases', () => {
    const aliased = [...crdManifests().values()].filter((content) => /: [&*]\w/.test(content));
    expect(aliased).toEqual([]);
  });
});

describe('the staleness check', () => {
  let folder: string;
  const url = () => pathToFileURL(`${folder}/`);

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'crds-'));
    for (const [name, content] of crdManifests()) writeFileSync(join(folder, name), content);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('passes a folder that is up to date', () => {
    expect(staleManifests(url())).toEqual([]);
  });

  it('names a manifest that differs', () => {
    writeFileSync(join(folder, 'proxies.yaml'), 'edited by hand\n');
    expect(staleManifests(url())).toEqual(['proxies.yaml']);
  });

  it('names a manifest that is missing', () => {
    rmSync(join(folder, 'providerhealths.yaml'));
    expect(staleManifests(url())).toEqual(['providerhealths.yaml']);
  });
});
