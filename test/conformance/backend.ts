/**
 * What the conformance suite needs of a backend besides the provider itself. What a backend cannot
 * show is left out, and the rules that need it are skipped with the reason.
 */
import type { Checker, Mark, Provider } from '#agent/providers/provider.ts';

export type TestedProvider = Provider & Partial<Checker>;

/** What the rules take for granted about requests; a backend says where its machines can be. */
export interface Surroundings {
  readonly namespace: string;
  readonly placement: { readonly zone?: string; readonly machineType?: string; image?: string };
  readonly port: number;
}

export interface Backend {
  readonly surroundings: Surroundings;
  /** Longest wait for a machine to come up, or to be gone. */
  readonly settleMsMax: number;
  /** Ids that the provider did not make, in the ways that are specific to its form of an id. */
  readonly malformedIds: readonly string[];
  /** A well-formed id of a machine that is not there. */
  idOf(name: string): string;
  /** Lines that the providers logged so far, at their most talkative level. */
  readonly logLines: readonly string[];

  /** A provider without memory of those before it: what a restart of the agent makes. */
  newProvider(): TestedProvider;
  /** A provider whose backend refuses connections. */
  refused?(): TestedProvider;
  /** A provider whose backend takes connections and never answers. */
  silent?(): TestedProvider;
  /** A provider that has no quota left to create with. */
  exhausted?(): TestedProvider;

  /** One text for each machine under the name, all that the backend holds of it. */
  machines(name: string): Promise<readonly string[]>;
  /** What else exists under the name: disks, seeds, addresses, configuration. */
  secondary(name: string): Promise<readonly string[]>;
  /** A machine that somebody else made by hand; returns its id. */
  makeUnmarked(name: string): Promise<string>;
  /** A machine as the provider would have made it for another mark; returns its id. */
  makeMarked(name: string, mark: Mark): Promise<string>;
  /** A marked machine in a state that the provider cannot know; tells the backend's word for it. */
  makeUnknown?(name: string, mark: Mark): Promise<{ readonly id: string; readonly word: string }>;
  /** Keeps a machine from being gone, once it is deleted, until the returned function is called. */
  holdDeletion?(id: string): Promise<() => Promise<void>>;

  /** Ends everything; nothing is left of it on the machine. */
  close(): Promise<void>;
}
