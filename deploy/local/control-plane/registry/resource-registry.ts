/** Every resource that is served now: the built-in ones and those of established CRDs. */
import { type ApiResource, apiVersionOf, storageName } from './api-resource.ts';

/** Looked into for each request; the CRD controller alone changes it. */
export class ResourceRegistry {
  readonly #builtin: readonly ApiResource[];
  /** Custom resources by the name of their CRD. */
  readonly #custom = new Map<string, readonly ApiResource[]>();
  #generation = 0;

  constructor(builtin: readonly ApiResource[]) {
    this.#builtin = builtin;
  }

  /** Grows when the set of resources changes; the OpenAPI documents are kept until then. */
  get generation(): number {
    return this.#generation;
  }

  all(): readonly ApiResource[] {
    return [...this.#builtin, ...[...this.#custom.values()].flat()];
  }

  /** The resource served under a plural name. */
  find(group: string, version: string, plural: string): ApiResource | undefined {
    return this.all().find(
      (resource) =>
        resource.group === group && resource.version === version && resource.plural === plural,
    );
  }

  /** The resource whose objects carry this `apiVersion` and `kind`. */
  findKind(apiVersion: string, kind: string): ApiResource | undefined {
    return this.all().find(
      (resource) => apiVersionOf(resource) === apiVersion && resource.kind === kind,
    );
  }

  /** The resource whose objects are stored under a name; of twins the first. */
  storedAs(storage: string): ApiResource | undefined {
    return this.all().find((resource) => resource.storage === storage);
  }

  /** One resource for each storage name; twins give the first. */
  stored(): readonly ApiResource[] {
    const byStorage = new Map<string, ApiResource>();
    for (const resource of this.all()) {
      if (!byStorage.has(resource.storage)) byStorage.set(resource.storage, resource);
    }
    return [...byStorage.values()];
  }

  inGroupVersion(group: string, version: string): readonly ApiResource[] {
    return this.all().filter(
      (resource) => resource.group === group && resource.version === version,
    );
  }

  /** Serves the versions of a CRD in place of what it defined before; none withdraws it. */
  replaceCustom(crdName: string, resources: readonly ApiResource[]): void {
    if (resources.length === 0) this.#custom.delete(crdName);
    else this.#custom.set(crdName, resources);
    this.#generation++;
  }

  /** Another CRD (or built-in) that already serves one of these names in the group. */
  nameTaken(crdName: string, group: string, names: readonly string[]): string | undefined {
    for (const resource of this.all()) {
      if (resource.group !== group || storageName(resource.plural, group) === crdName) continue;
      const taken = [resource.plural, resource.singular, ...resource.shortNames];
      const clash = names.find((name) => taken.includes(name));
      if (clash !== undefined) return clash;
    }
    return undefined;
  }
}
