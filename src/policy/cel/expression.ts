import { fail, ok, type Result } from "../../base/result.ts";
import type { ExpressionProblem } from "./error-messages.ts";
import { compileProgram, type Program } from "./evaluation.ts";
import { parseTerm } from "./grammar.ts";
import { findImplausible } from "./plausibility.ts";
import type { Term } from "./term.ts";
import { checkTypes, parseCel } from "./type-check.ts";

/** A compiled condition of a policy. */
export interface Expression extends Program {
  /** The source text. */
  readonly text: string;
  /** The syntax tree. */
  readonly condition: Term;
}

/** Maximum number of characters of an expression, which suffices for a list of two hundred node ids. */
const TEXT_CHARACTERS_MAX = 8_192;

/**
 * Compiles a condition in CEL. Rejects unknown fields, wrong types, unsupported syntax, expressions that are not a
 * boolean, and conditions that would always or never hold. The error lists at least one problem, ordered by offset:
 * the first syntax error, or every problem that is not a consequence of another one.
 */
export function compileExpression(text: string): Result<Expression, readonly ExpressionProblem[]> {
  if (text.trim() === "") return fail([{ message: "the expression is empty", offset: 0 }]);
  if (text.length > TEXT_CHARACTERS_MAX) {
    const message = `the expression has ${text.length} characters; the maximum is ${TEXT_CHARACTERS_MAX}`;
    return fail([{ message, offset: TEXT_CHARACTERS_MAX }]);
  }
  const parsed = parseCel(text);
  if (!parsed.ok) return fail([parsed.error]);
  const term = parseTerm(parsed.value.ast);
  const rejected = term.ok ? [] : term.error;
  const found = [
    ...rejected.map(({ problem }) => problem),
    ...checkTypes(
      parsed.value,
      text,
      rejected.map(({ part }) => part),
    ),
  ];
  if (!term.ok || found.length > 0) return fail(found.toSorted((one, other) => one.offset - other.offset));
  const condition = term.value;
  const implausible = findImplausible(condition);
  return implausible.length === 0 ? ok({ text, condition, ...compileProgram(condition) }) : fail(implausible);
}
