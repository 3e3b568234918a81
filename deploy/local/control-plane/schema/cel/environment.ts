/**
 * The CEL dialect of `x-kubernetes-validations`: the standard library of cel-js plus the
 * functions that Kubernetes adds for strings, lists, regular expressions, URLs and addresses.
 */
import { isIP } from 'node:net';
import { Environment } from '@marcbachmann/cel-js';
import { isCidr } from '../formats.ts';

/** What a list holds once it is inside the evaluator. */
type Comparable = bigint | number | string;

const AST_NODES_MAX = 10_000;

/** Shared by all rules: it holds no state, and building one is expensive. */
export const celEnvironment = createEnvironment();

function createEnvironment(): Environment {
  const environment = new Environment({
    homogeneousAggregateLiterals: false,
    enableOptionalTypes: true,
    limits: { maxAstNodes: AST_NODES_MAX },
  })
    .registerVariable('self', 'dyn')
    .registerVariable('oldSelf', 'dyn');
  registerStrings(environment);
  registerLists(environment);
  registerAddresses(environment);
  return environment;
}

function registerStrings(environment: Environment): void {
  environment
    .registerFunction('string.replace(string, string): string', replaceAll)
    .registerFunction('string.replace(string, string, int): string', replaceSome)
    .registerFunction('string.charAt(int): string', charAt)
    .registerFunction('string.find(string): string', find)
    .registerFunction('string.findAll(string): list<string>', findAll)
    .registerFunction('string.reverse(): string', (text: string) => [...text].reverse().join(''));
}

function registerLists(environment: Environment): void {
  environment
    .registerFunction('list.isSorted(): bool', isSorted)
    .registerFunction('list.sum(): dyn', sum)
    .registerFunction('list.min(): dyn', (list: Comparable[]) => pick(list, (a, b) => a < b))
    .registerFunction('list.max(): dyn', (list: Comparable[]) => pick(list, (a, b) => a > b))
    .registerFunction('list.indexOf(dyn): int', (list: Comparable[], item: Comparable) =>
      BigInt(list.indexOf(item)),
    )
    .registerFunction('list.lastIndexOf(dyn): int', (list: Comparable[], item: Comparable) =>
      BigInt(list.lastIndexOf(item)),
    );
}

function registerAddresses(environment: Environment): void {
  environment
    .registerFunction('isURL(string): bool', (text: string) => URL.canParse(text))
    .registerFunction('isIP(string): bool', (text: string) => isIP(text) !== 0)
    .registerFunction('isCIDR(string): bool', (text: string) => isCidr(text));
}

function replaceAll(text: string, search: string, replacement: string): string {
  return text.replaceAll(search, () => replacement);
}

function replaceSome(text: string, search: string, replacement: string, limit: bigint): string {
  if (limit < 0n) return replaceAll(text, search, replacement);
  let left = limit;
  return text.replaceAll(search, () => {
    if (left === 0n) return search;
    left -= 1n;
    return replacement;
  });
}

function charAt(text: string, index: bigint): string {
  const characters = [...text];
  if (index < 0n || index > BigInt(characters.length)) {
    throw new Error(`index out of range: ${index}`);
  }
  return characters[Number(index)] ?? '';
}

function find(text: string, pattern: string): string {
  return new RegExp(pattern).exec(text)?.[0] ?? '';
}

function findAll(text: string, pattern: string): string[] {
  return [...text.matchAll(new RegExp(pattern, 'g'))].map((match) => match[0]);
}

function isSorted(list: Comparable[]): boolean {
  return list.every((item, index) => {
    const previous = list[index - 1];
    return previous === undefined || previous <= item;
  });
}

function sum(list: (bigint | number)[]): bigint | number {
  if (list.every((item) => typeof item === 'bigint')) {
    return list.reduce((total, item) => total + item, 0n);
  }
  return list.reduce<number>((total, item) => total + Number(item), 0);
}

function pick(list: Comparable[], better: (a: Comparable, b: Comparable) => boolean): Comparable {
  const [first, ...rest] = list;
  if (first === undefined) throw new Error('min and max need a list that is not empty');
  return rest.reduce((best, item) => (better(item, best) ? item : best), first);
}
