/**
 * The port to Compute Engine: the calls that the provider makes, and how they fail. `compute-client.ts`
 * is the official client behind it. Each call takes one request at most, retries nothing, has a
 * deadline, and ends promptly with its signal.
 */
import type { Labels } from '../mark.ts';
import type {
  AggregatedPage,
  FirewallResource,
  InstanceResource,
  OperationResource,
  RegionResource,
} from './resources.ts';

/** A failed call. Holds nothing of the request, which may hold user-data. */
export class ComputeError extends Error {
  override readonly name = 'ComputeError';
  /** HTTP status of the answer; undefined when there was none. */
  readonly status: number | undefined;
  /** Of the answer's `error.errors[]`, such as `quotaExceeded`; empty when it names none. */
  readonly reasons: readonly string[];

  constructor(message: string, of: { status?: number | undefined; reasons?: readonly string[] }) {
    super(message);
    this.status = of.status;
    this.reasons = of.reasons ?? [];
  }
}

export interface ComputeApi {
  /** `requestId`: a UUID; a repeat within the API's memory is answered with the first operation. */
  insertInstance(
    at: { readonly zone: string; readonly requestId: string },
    instance: object,
    signal: AbortSignal,
  ): Promise<OperationResource>;
  getInstance(
    at: { readonly zone: string; readonly name: string },
    signal: AbortSignal,
  ): Promise<InstanceResource>;
  deleteInstance(
    at: { readonly zone: string; readonly name: string },
    signal: AbortSignal,
  ): Promise<OperationResource>;
  setLabels(
    at: { readonly zone: string; readonly name: string },
    to: { readonly labels: Labels; readonly labelFingerprint: string },
    signal: AbortSignal,
  ): Promise<OperationResource>;
  /** One page over all zones, with partial success. */
  listInstances(
    query: { readonly filter: string; readonly pageToken?: string; readonly maxResults: number },
    signal: AbortSignal,
  ): Promise<AggregatedPage>;
  /** The newest operations first, one page. */
  listZoneOperations(
    at: { readonly zone: string; readonly filter: string; readonly maxResults: number },
    signal: AbortSignal,
  ): Promise<OperationResource[]>;
  /** Answers when the operation is done, or after about two minutes when it is not. */
  waitZoneOperation(
    at: { readonly zone: string; readonly operation: string },
    signal: AbortSignal,
  ): Promise<OperationResource>;
  getFirewall(name: string, signal: AbortSignal): Promise<FirewallResource>;
  insertFirewall(rule: object, signal: AbortSignal): Promise<OperationResource>;
  patchFirewall(name: string, rule: object, signal: AbortSignal): Promise<OperationResource>;
  /** All regions with the project's quotas there. */
  listRegions(signal: AbortSignal): Promise<RegionResource[]>;
  /** Calls that are made afterwards fail. */
  close(): Promise<void>;
}
