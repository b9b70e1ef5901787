/** An invalid regular expression in a text. */
interface RegexpProblem {
  readonly message: string;
  /** Index in the text of the string that contains the expression. */
  readonly offset: number;
}

/** Matches an Alertmanager matcher with a regular expression. */
const REGEXP_MATCHER = /^\s*(?:[A-Za-z_:][\w:]*|"(?:[^"\\]|\\.)+")\s*(=~|!~)\s*("(?:[^"\\]|\\.)*"|[^\s"{}=~!,]+)\s*$/;
/** Matches a comment, or a string with the operator before it, if any, in PromQL. */
const PROMQL_STRING = /#.*|(?:(=~|!~)\s*)?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)/g;

/** Returns the problem of the regular expression of an Alertmanager matcher, or null if none is known. */
export function findMatcherProblem(matcher: string): RegexpProblem | null {
  const value = REGEXP_MATCHER.exec(matcher)?.[2];
  return value === undefined ? null : stringProblem(value, matcher.trimEnd().length - value.length);
}

/** Returns the problem of the first invalid regular expression in a PromQL query, or null if none is known. */
export function findQueryProblem(query: string): RegexpProblem | null {
  for (const { 0: found, 1: operator, 2: value = "", index } of query.matchAll(PROMQL_STRING)) {
    const problem = operator === undefined ? null : stringProblem(value, index + found.length - value.length);
    if (problem !== null) return problem;
  }
  return null;
}

function stringProblem(written: string, offset: number): RegexpProblem | null {
  const pattern = unquote(written);
  const message = pattern === null ? null : regexpProblem(pattern);
  return message === null ? null : { message, offset };
}

/** Returns the value of a string, or null if it has escape sequences other than those of a quote and a backslash. */
function unquote(written: string): string | null {
  const [quote = ""] = written;
  if (quote === "`") return written.slice(1, -1);
  if (quote !== '"' && quote !== "'") return written;
  const text = written.slice(1, -1);
  if (/\\./.exec(text.replaceAll(/\\[\\"']/g, "")) !== null) return null;
  return text.replaceAll(/\\([\\"'])/g, "$1");
}

/**
 * Matches syntax that RE2, which Prometheus and Alertmanager use, accepts and JavaScript rejects or reads differently:
 * flags and named groups, `\Q…\E`, character classes such as `[[:alpha:]]`, a class that begins with `]`, `\x{41}`, and
 * a repeated `^`, `$`, `\A`, `\z` or `\b`.
 */
const RE2_SYNTAX = /\(\?|\\[QEx]|\[:|\[\^?\]|(?:[\^$]|\\[AzbB])[*+?{]/;

/**
 * Returns why a regular expression is invalid both in RE2 and in JavaScript, or null. An expression that only one of
 * them rejects is accepted.
 */
function regexpProblem(pattern: string): string | null {
  if (RE2_SYNTAX.test(pattern)) return null;
  try {
    new RegExp(pattern);
    return null;
  } catch (error) {
    if (!(error instanceof SyntaxError)) return null;
    // The message is "Invalid regular expression: /PATTERN/: reason".
    const reason = error.message.slice(error.message.lastIndexOf("/: ") + "/: ".length);
    return reason.charAt(0).toLowerCase() + reason.slice(1);
  }
}
