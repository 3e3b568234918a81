/** Parts of the routes' definitions. */
import type { z } from 'zod';

/** What the routes of crawlers have in common. */
export const CRAWLER = { tags: ['crawlers'], security: [{ bearer: [] }] };
export const AGENT = { tags: ['agents'], security: [{ bearer: [] }] };
/** Routes that need no credentials. */
export const OPEN = { tags: ['open'], security: [] };

export const CRAWLER_REFUSALS = ['unauthorized', 'auth_not_configured', 'overloaded'] as const;
/** Of what counts as a request of the client, which is all but giving back. */
export const COUNTED_REFUSALS = [...CRAWLER_REFUSALS, 'too_many_requests'] as const;

export function json<Schema extends z.ZodType>(description: string, schema: Schema) {
  return { description, content: { 'application/json': { schema } } };
}

/** An empty body stands for `{}`. */
export function jsonBodyOf<Schema extends z.ZodType>(schema: Schema) {
  return { required: false, content: { 'application/json': { schema } } };
}
