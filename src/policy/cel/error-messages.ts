/** Why an expression is invalid. */
export interface ExpressionProblem {
  /** One sentence, without a full stop. */
  readonly message: string;
  /** Index in the text. */
  readonly offset: number;
}

/** An error of the CEL parser or type checker. */
interface CelError {
  readonly code: string;
  readonly summary: string;
  /** The expression that is wrong. Where a field is selected, `range` begins at the field. */
  readonly node?: Range;
  readonly range?: Range;
}

interface Range {
  readonly start: number;
  readonly end: number;
}

/** Describes a syntax error. */
export function describeParseError({ code, summary, range }: CelError, text: string): ExpressionProblem {
  const { start, end } = range ?? { start: 0, end: 0 };
  const written = text.slice(start, Math.max(end, start + 1)).trim();
  const found = written === "" ? "the expression ends unexpectedly" : `unexpected ${written}`;
  const problem = (message: string): ExpressionProblem => ({ message, offset: start });
  switch (code) {
    case "unexpected_character":
    case "unexpected_token":
      return problem(
        SUGGESTED_OPERATORS.has(written) ? `${found}; did you mean ${SUGGESTED_OPERATORS.get(written)}?` : found,
      );
    case "expected_token":
      return problem(`${found}; expected ${TOKEN_TEXTS.get(wordAfter("Expected", summary)) ?? "something else"}`);
    case "limit_exceeded":
      return problem(LIMIT_MESSAGES.get(wordAfter("Exceeded", summary)) ?? celMessage(summary));
    default:
      return problem(celMessage(summary));
  }
}

/** Describes a type error. */
export function describeTypeError({ summary, node, range }: CelError, text: string): ExpressionProblem {
  const { start, end } = node ?? range ?? { start: 0, end: text.length };
  const written = truncated(text.slice(start, end));
  return { message: `${celMessage(summary)}, in ${written}`, offset: start };
}

const wordAfter = (word: string, summary: string): string => new RegExp(`^${word} (\\w+)`).exec(summary)?.[1] ?? "";

/** Syntax of other languages, with the CEL syntax to use instead. */
const SUGGESTED_OPERATORS = new Map(Object.entries({ "=": "==", "&": "&&", "|": "||", and: "&&", or: "||" }));

const TOKEN_TEXTS = new Map(
  Object.entries({ RPAREN: ")", RBRACKET: "]", RBRACE: "}", COLON: ":", IDENTIFIER: "a name" }),
);

const LIMIT_MESSAGES = new Map(
  Object.entries({
    maxAstNodes: "the expression has too many parts",
    maxDepth: "the expression is nested too deeply",
    maxListElements: "the list is too long",
    maxMapEntries: "maps are not supported",
    maxCallArguments: "too many arguments",
  }),
);

/** Replaces protobuf's names of types. */
export const withoutTypeNames = (message: string): string =>
  message.replaceAll("google.protobuf.Timestamp", "timestamp").replaceAll("google.protobuf.Duration", "duration");

/** Adapts a message of CEL to our style. */
function celMessage(summary: string): string {
  const message = withoutTypeNames(summary)
    .replace(/^no such overload: (.+)$/, "$1 is not supported")
    .replace(/^found no matching overload for '(.+)'$/, "$1 is not supported");
  return message.charAt(0).toLowerCase() + message.slice(1);
}

/** Maximum number of characters of an expression that a message quotes. */
const QUOTED_CHARACTERS_MAX = 60;

const truncated = (text: string): string =>
  text.length <= QUOTED_CHARACTERS_MAX ? text : `${text.slice(0, QUOTED_CHARACTERS_MAX)}…`;
