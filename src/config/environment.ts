import { fail, ok, type Result } from "../base/result.ts";

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

const NAME_EXPECTED = `must name an environment variable, as in \${NAME}; for a literal \${ write $\${`;

/**
 * Returns a text with its variables replaced, and their names: `${NAME}` by the variable's value, which is not expanded
 * again; `$${` stands for a literal `${`. The error says what was found and what is expected, and never contains a
 * variable's value.
 */
export function substitute(
  text: string,
  env: Environment,
): Result<{ readonly text: string; readonly variables: readonly string[] }, { found: string; expected: string }> {
  const variables: string[] = [];
  let result = "";
  let done = 0;
  for (const match of text.matchAll(/\$\$\{|\$\{([^}]*)(\}?)/g)) {
    result += text.slice(done, match.index);
    done = match.index + match[0].length;
    const [found, name, end] = match;
    if (name === undefined) {
      result += "${";
      continue;
    }
    // The text after an open brace may be a secret.
    if (end === "") return fail({ found: "${", expected: NAME_EXPECTED });
    if (!/^[A-Za-z_]\w*$/.test(name)) return fail({ found, expected: NAME_EXPECTED });
    const value = env[name];
    if (value === undefined) return fail({ found, expected: `the environment variable ${name} must be set` });
    result += value;
    variables.push(name);
  }
  return ok({ text: result + text.slice(done), variables });
}
