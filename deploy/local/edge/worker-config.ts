/** The configuration of a runtime process that serves one Worker, in the runtime's own language. */

export interface ObjectClass {
  /** Name of the binding by which the Worker reaches the objects. */
  readonly binding: string;
  readonly className: string;
  /** Makes an object's id of its name, and names the folder of its storage: never to change. */
  readonly key: string;
}

export interface WorkerSpec {
  /** One ES module, all of the Worker. */
  readonly script: string;
  readonly compatibilityDate: string;
  readonly compatibilityFlags: readonly string[];
  /** Settings and secrets. */
  readonly texts: Readonly<Record<string, string>>;
  /** Durable Objects with SQLite storage. */
  readonly objects: readonly ObjectClass[];
}

/** The script, beside the configuration in the same folder. */
export const SCRIPT_FILE = 'worker.js';
/** Name of the Worker's service, by which the inspector knows it, too. */
export const SERVICE = 'worker';
export const SOCKET = 'http';

/** Text of a configuration whose objects are stored in `storage`, which must be absolute. */
export function workerConfig(spec: WorkerSpec, storage: string): string {
  const bindings = [
    ...Object.entries(spec.texts).map(([name, value]) => ({ name, of: `text = ${text(value)}` })),
    ...spec.objects.map(({ binding, className }) => ({
      name: binding,
      of: `durableObjectNamespace = ${text(className)}`,
    })),
  ].map(({ name, of }) => `(name = ${text(name)}, ${of})`);
  const namespaces = spec.objects.map(
    ({ className, key }) =>
      `(className = ${text(className)}, uniqueKey = ${text(key)}, enableSql = true)`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = ${text(SERVICE)}, worker = .worker),
    (name = "disk", disk = (path = ${text(storage)}, writable = true)),
  ],
  sockets = [(name = ${text(SOCKET)}, http = (), service = ${text(SERVICE)})],
);
const worker :Workerd.Worker = (
  modules = [(name = ${text(SCRIPT_FILE)}, esModule = embed ${text(SCRIPT_FILE)})],
  compatibilityDate = ${text(spec.compatibilityDate)},
  compatibilityFlags = [${spec.compatibilityFlags.map(text).join(', ')}],
  bindings = [${bindings.join(', ')}],
  durableObjectNamespaces = [${namespaces.join(', ')}],
  durableObjectStorage = (localDisk = "disk"),
);
`;
}

/** A text literal; the language knows no `\u`, and takes everything else as it is. */
function text(value: string): string {
  const escaped = value.replaceAll(/["\\]|\p{Cc}/gu, (char) =>
    char === '"' || char === '\\'
      ? `\\${char}`
      : `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
  return `"${escaped}"`;
}
