/** Names that users, manifests and both halves of the system agree on (contract §1). */

export const GROUP = 'crawl.example.com';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;

/** Keeps a managed Proxy until its instance is gone. */
export const FINALIZER = `${GROUP}/instance`;
/** Hash of what a new machine is needed for; written by the agent. */
export const SPEC_HASH_ANNOTATION = `${GROUP}/spec-hash`;
/** `"true"` abandons the instance and releases the object. */
export const SKIP_CLEANUP_ANNOTATION = `${GROUP}/skip-cleanup`;
/** Secrets that hold cloud-init user-data carry this label with the value `"true"`. */
export const CLOUD_INIT_LABEL = `${GROUP}/cloud-init`;

/** Name of the Proxy that a pod was made for. */
export const PROXY_ANNOTATION = `${GROUP}/proxy`;

/** Mark of every instance that the agent made; value `"true"`. */
export const MANAGED_LABEL = 'proxy-operator-managed';
/** UID of the Proxy that owns an instance. */
export const UID_LABEL = 'proxy-operator-uid';
/** Id of the installation that made an instance: another one's machines are never touched. */
export const INSTALLATION_LABEL = 'proxy-operator-installation';
