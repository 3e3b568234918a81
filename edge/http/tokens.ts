/**
 * The texts of the token secrets: one token, or `name=token` lines. A single line counts as named
 * only when something other than `=` follows the first `=`, since base64 may end in those.
 */

export interface NamedToken {
  /** undefined: the one token that has no name. */
  readonly name: string | undefined;
  readonly token: string;
}

export type ParsedTokens =
  | { readonly ok: true; readonly tokens: readonly NamedToken[] }
  /** What is wrong, without showing any of the text. */
  | { readonly ok: false; readonly problem: string };

const NAMED = /^([A-Za-z0-9](?:[-A-Za-z0-9._]*[A-Za-z0-9])?)[ \t]*=[ \t]*(\S*[^\s=]\S*)$/;
const TOKENS_MAX = 1_000;

/** `reserved`: names that mean something else already. */
export function parseTokens(text: string, reserved: readonly string[] = []): ParsedTokens {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (lines.length > TOKENS_MAX) return refuse(`more than ${TOKENS_MAX} lines`);
  const tokens: NamedToken[] = [];
  for (const [index, line] of lines.entries()) {
    const [, name, token] = NAMED.exec(line) ?? [];
    if (name !== undefined && token !== undefined) tokens.push({ name, token });
    else if (lines.length > 1) return refuse(`line ${index + 1} is not name=token`);
    else if (/\s/.test(line)) return refuse('the token has a space in it');
    else tokens.push({ name: undefined, token: line });
  }
  const taken = reserved.find((name) => tokens.some((token) => token.name === name));
  if (taken !== undefined) return refuse(`the name ${taken} is reserved; choose another`);
  if (hasTwice(tokens.map(({ name }) => name))) return refuse('a name occurs twice');
  if (hasTwice(tokens.map(({ token }) => token))) return refuse('a token occurs twice');
  return { ok: true, tokens };
}

function hasTwice(values: readonly unknown[]): boolean {
  return new Set(values).size < values.length;
}

function refuse(problem: string): ParsedTokens {
  return { ok: false, problem };
}
