import { fail, ok, type Result } from "../base/result.ts";

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A text with its variables replaced, and their names. */
interface SubstitutedText {
  readonly text: string;
  readonly variables: readonly string[];
  /** Maps an index in `text` to the index in the original text. */
  originalIndex(index: number): number;
}

const NAME_EXPECTED = `must name an environment variable, as in \${NAME}; for a literal \${ write $\${`;

/**
 * Replaces `${NAME}` by the variable's value, which is not expanded again; `$${` stands for a literal `${`. The error
 * says what was found and what is expected, and never contains a variable's value.
 */
export function substitute(
  text: string,
  env: Environment,
): Result<SubstitutedText, { found: string; expected: string }> {
  const variables: string[] = [];
  const replaced: Replacement[] = [];
  let result = "";
  let done = 0;
  for (const match of text.matchAll(/\$\$\{|\$\{([^}]*)(\}?)/g)) {
    result += text.slice(done, match.index);
    done = match.index + match[0].length;
    const [found, name, end] = match;
    if (name === undefined) {
      replaced.push({ start: result.length, end: result.length + 2, from: match.index, to: done });
      result += "${";
      continue;
    }
    // The text after an open brace may be a secret.
    if (end === "") return fail({ found: "${", expected: NAME_EXPECTED });
    if (!/^[A-Za-z_]\w*$/.test(name)) return fail({ found, expected: NAME_EXPECTED });
    const value = env[name];
    if (value === undefined) return fail({ found, expected: `the environment variable ${name} must be set` });
    replaced.push({ start: result.length, end: result.length + value.length, from: match.index, to: done });
    result += value;
    variables.push(name);
  }
  const originalIndex = (index: number) => indexBeforeReplacement(replaced, index);
  return ok({ text: result + text.slice(done), variables, originalIndex });
}

/** A replacement of `from` to `to` in the original text by `start` to `end` in the result. */
interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly from: number;
  readonly to: number;
}

function indexBeforeReplacement(replaced: readonly Replacement[], index: number): number {
  const last = replaced.findLast(({ start }) => start <= index);
  if (last === undefined) return index;
  return index < last.end ? last.from : last.to + index - last.end;
}
