import type { ParseError, TypeError as TypeFault } from "@marcbachmann/cel-js";
import { formatDuration, parseDuration } from "../../base/duration.ts";
import { truncate } from "../../base/text.ts";

/** Maximum number of characters of an expression that a message quotes. */
const QUOTED_CHARACTERS_MAX = 60;

/** Why an expression is invalid. */
export interface ExpressionProblem {
  /** One sentence, without a full stop. */
  readonly message: string;
  /** Index in the text. */
  readonly offset: number;
}

/** Describes a syntax error. */
export function describeParseError({ code, summary, range }: ParseError, text: string): ExpressionProblem {
  const { start, end } = range ?? { start: 0, end: 0 };
  const written = text.slice(start, Math.max(end, start + 1)).trim();
  const isShare = written === "" && /\d\s*%\s*$/.test(text);
  const found =
    written === ""
      ? `the expression ends unexpectedly${isShare ? "; write a share as a ratio, such as 0.9 for 90%" : ""}`
      : `unexpected ${written}`;
  const problem = (message: string): ExpressionProblem => ({ message, offset: start });
  switch (code) {
    case "unexpected_character":
    case "unexpected_token": {
      const before = text.slice(0, start);
      const [regularExpression] = /^[=!]~/.exec(text.slice(start)) ?? [];
      if (regularExpression !== undefined) {
        return problem(
          `unexpected ${regularExpression}: regular expressions are not supported; use contains, startsWith or endsWith`,
        );
      }
      const meant =
        SUGGESTED_OPERATORS.get(written.toLowerCase()) ??
        OPERATORS_BEFORE.find(([pattern]) => pattern.test(before + written))?.[1] ??
        durationCall(`${/[\d.]*$/.exec(before)![0]}${written}`);
      return problem(meant === null ? found : `${found}; did you mean ${meant}?`);
    }
    case "expected_token":
      return problem(`${found}; expected ${TOKEN_TEXTS.get(wordAfter("Expected", summary)) ?? "something else"}`);
    case "limit_exceeded":
      return problem(LIMIT_MESSAGES.get(wordAfter("Exceeded", summary)) ?? celMessage(summary));
    default:
      return problem(celMessage(summary));
  }
}

/** Returns the call for a duration that is written without quotes, or null for another text. */
function durationCall(written: string): string | null {
  if (parseDuration(written).ok) return `duration("${written}")`;
  const [, fraction, unit] = /^(\d*\.\d+)([a-z]+)$/.exec(written) ?? [];
  const one = parseDuration(`1${unit}`);
  return one.ok ? `duration("${formatDuration(Number(fraction) * one.value)}")` : null;
}

/** Describes a type error. */
export function describeTypeError({ summary, node, range }: ParseError | TypeFault, text: string): ExpressionProblem {
  // Where a field is selected, the range begins at the field.
  const { start, end } = node ?? range ?? { start: 0, end: text.length };
  const written = truncate(withParentheses(text, start, end), QUOTED_CHARACTERS_MAX);
  const message = celMessage(summary);
  const hint = DURATION_AND_OTHER.test(message) ? DURATION_HINT : "";
  return { message: `${message}, in ${written}${hint}`, offset: start };
}

/** Returns a part of a text, with the parentheses around its first and last operand, which CEL's range leaves out. */
function withParentheses(text: string, start: number, end: number): string {
  const part = text.slice(start, end);
  let unclosed = 0;
  let unopened = 0;
  for (const [parenthesis] of part.matchAll(/[()]/g)) {
    if (parenthesis === "(") unclosed++;
    else if (unclosed > 0) unclosed--;
    else unopened++;
  }
  return `${"(".repeat(unopened)}${part}${")".repeat(unclosed)}`;
}

/** What to write instead of a number or a string that is meant as a duration. */
export const DURATION_HINT = '; write durations as duration("10m")';

/** Matches a message about an operator between a duration and a number or a string. */
const DURATION_AND_OTHER = /^(?:duration \S+ (?:int|double|string)|(?:int|double|string) \S+ duration) /;

const wordAfter = (word: string, summary: string): string => new RegExp(`^${word} (\\w+)`).exec(summary)?.[1] ?? "";

/** Syntax of other languages, with the CEL syntax to use instead. */
const SUGGESTED_OPERATORS = new Map(Object.entries({ "=": "==", "&": "&&", "|": "||", and: "&&", or: "||" }));

/** The same for operators that end where the unexpected text begins, or with it. */
const OPERATORS_BEFORE: readonly (readonly [pattern: RegExp, meant: string])[] = [
  [/\bnot\s+\w+$/i, "! instead of not"],
  [/<>$/, "!= instead of <>"],
];

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
