/** What the local node knows of images: an adapter turns a container of one into a process. */
import type { Container, Pod } from './pod.ts';
import type { Owner } from './volumes.ts';

/** Where a container finds itself on this machine. */
export interface ContainerPlace {
  readonly pod: Pod;
  readonly container: Container;
  /** Address of the pod. */
  readonly ip: string;
  /** A folder of the container's own; also its working directory. */
  readonly folder: string;
  /** Its mounts, longest container path first. */
  readonly mounts: readonly { readonly containerPath: string; readonly hostPath: string }[];
  /** Resolved environment of the container. */
  readonly env: Readonly<Record<string, string>>;
  /** The user that the process will run as; undefined when it is ours. */
  readonly owner?: Owner;
}

export interface Invocation {
  readonly command: string;
  readonly args: readonly string[];
  /** Removes what the process leaves outside of the container's folder; called after its end. */
  cleanUp?(): void;
}

export interface ImageAdapter {
  /**
   * The process that stands for the container; may write files into the container's folder.
   * Throws a `ContainerStartError` for a command that the image does not have.
   */
  prepare(place: ContainerPlace): Invocation;
  /** The user of the image when the pod names none; only asked for when we are root. */
  defaultOwner(): Owner;
}

/** The adapter for an image name; undefined for an image that this node cannot run. */
export type ImageCatalog = (image: string) => ImageAdapter | undefined;

/** A container that cannot be started as it is described. */
export class ContainerStartError extends Error {
  override readonly name = 'ContainerStartError';
}
