/** Secrets of an edge that tests and benchmarks start. */

export const CRAWLER_TOKEN = 'crawler-secret-of-tests';
export const AGENT_TOKEN = 'agent-secret-of-tests';

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
