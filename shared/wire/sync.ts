/** What an agent pushes to the edge and what comes back (contract §3). */
import { z } from 'zod';

/** Largest body of a sync, after decompression. */
export const SYNC_BODY_BYTES_MAX = 8 * 1024 * 1024;
/** An agent sends at least this often. */
export const HEARTBEAT_INTERVAL_MS = 15_000;

export const credentialsSchema = z.object({ username: z.string(), password: z.string() });
export type Credentials = z.infer<typeof credentialsSchema>;

export const inventoryEntrySchema = z.strictObject({
  /** UID of the Proxy. */
  uid: z.string().min(1).max(128),
  namespace: z.string().max(253),
  name: z.string().min(1).max(253),
  /** Changes when the machine behind the Proxy does. */
  instance: z.string().max(512),
  host: z.string().min(1).max(253),
  port: z.number().int().min(1).max(65535),
  protocol: z.enum(['http', 'https', 'socks5']),
  credentials: credentialsSchema.optional(),
  attributes: z.record(z.string(), z.string()),
  maxLeases: z.number().int().min(1),
  /** null: not probed yet. */
  healthy: z.boolean().nullable(),
  latencyMillis: z.number().int().min(0).optional(),
  egressIP: z.string().max(64).optional(),
  leasable: z.boolean(),
  draining: z.boolean(),
});
export type InventoryEntry = z.infer<typeof inventoryEntrySchema>;

/** A cluster's name, as it stands in the path of its syncs. */
export const clusterNameSchema = z
  .string()
  .max(253)
  .regex(
    /^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$/,
    'must be letters, digits, "-", "_" and ".", and begin and end with a letter or digit',
  );

export const syncRequestSchema = z
  .strictObject({
    /** Grows with each election; fences old leaders. */
    term: z.number().int().min(0),
    /** New at each agent start. */
    session: z.string().min(1).max(128),
    /** Counts up by one within a session. */
    seq: z.number().int().min(1),
    kind: z.enum(['full', 'delta', 'heartbeat']),
    /**
     * `seq` of the last full or delta sync that was acknowledged. An edge that has forgotten the
     * heartbeats since then, which it need not store, sees by it that it has missed no change.
     */
    basis: z.number().int().min(1).optional(),
    /** Pages of a full sync; it takes effect with its last page. `index` counts from 0. */
    page: z
      .strictObject({ index: z.number().int().min(0), of: z.number().int().min(1).max(1000) })
      .refine((page) => page.index < page.of, { message: 'index must be below of' })
      .optional(),
    upserts: z.array(inventoryEntrySchema).default([]),
    /** UIDs. */
    removes: z.array(z.string().min(1).max(128)).default([]),
  })
  .refine(({ kind, page }) => kind === 'full' || page === undefined, {
    path: ['page'],
    message: 'only a full sync has pages',
  })
  .refine(({ kind, upserts }) => kind !== 'heartbeat' || upserts.length === 0, {
    path: ['upserts'],
    message: 'a heartbeat carries no changes',
  })
  .refine(({ kind, removes }) => kind === 'delta' || removes.length === 0, {
    path: ['removes'],
    message: 'only a delta removes entries',
  });
export type SyncRequest = z.infer<typeof syncRequestSchema>;

export const syncResponseSchema = z.object({
  acceptedSeq: z.number().int(),
  /** Milliseconds since the epoch. */
  serverTime: z.number().int(),
  /**
   * The request concerned a part of the fleet only, and the answer tells of that part: what it does
   * not name is as it was. Proxies that drain are named even when they have no lease.
   */
  partial: z.literal(true).optional(),
  /** Active leases by Proxy UID; absent is 0, unless the answer is partial. */
  leases: z.record(z.string(), z.number().int()),
  /** Reports since the last answer, by Proxy UID. */
  reports: z.record(
    z.string(),
    z.object({
      rate_limited: z.number().int(),
      banned: z.number().int(),
      targets: z.array(z.string()),
    }),
  ),
  /** Outcomes of lease requests since the edge began to count, by outcome; empty if partial. */
  counters: z.record(z.string(), z.number().int()),
});
export type SyncResponse = z.infer<typeof syncResponseSchema>;
