/** The one firewall rule of a provider, and whether one that exists is it. Pure. */
import { createHash } from 'node:crypto';
import type { GcpBlock, GcpFirewall } from '../config-gcp.ts';
import { nameOfUrl } from './id.ts';
import { networkPath } from './request.ts';
import type { FirewallResource } from './resources.ts';

/** Whose rule it is: neither another provider's nor another installation's is touched. */
export interface RuleOwner {
  readonly provider: string;
  readonly installation: string;
}

const HASH_CHARACTERS = 12;

/** The same for the whole life of the provider; the mode of ranges apart, nothing else is in it. */
export function ruleName({ provider, installation }: RuleOwner): string {
  const owner = JSON.stringify([installation, provider]);
  const hash = createHash('sha256').update(owner).digest('hex').slice(0, HASH_CHARACTERS);
  return `egress-proxy-${hash}`;
}

function descriptionOf({ provider, installation }: RuleOwner): string {
  return `egress proxies of provider ${provider}, installation ${installation}`;
}

export function buildRule(owner: RuleOwner, block: GcpBlock, firewall: GcpFirewall): object {
  return {
    name: ruleName(owner),
    description: descriptionOf(owner),
    network: networkPath(block.network),
    direction: 'INGRESS',
    disabled: false,
    sourceRanges: firewall.sourceRanges,
    targetTags: [block.networkTag],
    allowed: [{ IPProtocol: 'tcp', ports: firewall.ports.map(String) }],
  };
}

export type RuleFinding = 'foreign' | 'same' | 'differs';

/** Compares a rule with what the configuration says; order does not matter to the API. */
export function compareRule(
  rule: FirewallResource,
  owner: RuleOwner,
  block: GcpBlock,
  firewall: GcpFirewall,
): RuleFinding {
  if (rule.description !== descriptionOf(owner)) return 'foreign';
  const [allowed, ...more] = rule.allowed;
  const same =
    more.length === 0 &&
    allowed?.IPProtocol === 'tcp' &&
    !rule.disabled &&
    rule.direction === 'INGRESS' &&
    nameOfUrl(rule.network) === nameOfUrl(networkPath(block.network)) &&
    sameSet(allowed.ports, firewall.ports.map(String)) &&
    sameSet(rule.sourceRanges.map(asRange), firewall.sourceRanges.map(asRange)) &&
    sameSet(rule.targetTags, [block.networkTag]);
  return same ? 'same' : 'differs';
}

/** A single address is a range of its own to the API, which writes it so or not. */
function asRange(range: string): string {
  if (range.includes('/')) return range;
  return `${range}/${range.includes(':') ? 128 : 32}`;
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  return JSON.stringify([...new Set(a)].sort()) === JSON.stringify([...new Set(b)].sort());
}
