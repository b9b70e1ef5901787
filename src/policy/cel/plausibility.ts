import { nearest } from "../../base/nearest-word.ts";
import { KNOWN_STATUSES } from "../../model/node.ts";
import type { ExpressionProblem } from "./error-messages.ts";
import type { Field, FieldRange } from "./fields.ts";
import {
  type ComparisonTerm,
  childTerms,
  fieldsOfTerm,
  isText,
  METHODS,
  type Term,
  type TermPair,
  type Value,
  walkTerms,
} from "./term.ts";

/**
 * Returns the parts of a condition that always or never hold, such as a misspelled value, a percentage in place of a
 * ratio, or an empty string, and those that order strings.
 */
export function findImplausible(condition: Term): readonly ExpressionProblem[] {
  const problem = describeImplausible(condition);
  return problem === null ? childTerms(condition).flatMap(findImplausible) : [problem];
}

/**
 * Returns warnings about comparisons that hold for no node of most services, but may for some: the service does not
 * define the case of country codes.
 */
export const findUnlikely = (condition: Term): readonly string[] =>
  [...walkTerms(condition)].flatMap(comparedPairs).flatMap(([left, right]) => {
    const [field, literal] = left.kind === "field" ? [left, right] : [right, left];
    if (field.kind !== "field" || field.field.range !== "country" || literal.kind !== "literal") return [];
    const [found, code] = [String(literal.value), String(literal.value).toUpperCase()];
    if (found === code) return [];
    return [`compares ${field.field.name} with "${found}", but country codes are usually in upper case: "${code}"`];
  });

function comparedPairs(term: Term): readonly TermPair[] {
  if (term.kind === "in") return term.list.map((literal) => [term.member, literal]);
  return term.kind === "comparison" ? [term.sides] : [];
}

function describeImplausible(term: Term): ExpressionProblem | null {
  // A constant boolean may be the whole condition or a part of it.
  const isCondition = term.kind === "literal" ? typeof term.value === "boolean" : comparedPairs(term).length > 0;
  if (!isCondition) return null;
  if (fieldsOfTerm(term).length === 0)
    return { message: "this reads no field, so it has the same value for every node", offset: term.offset };
  if (term.kind === "comparison") return comparisonProblem(term);
  return (
    comparedPairs(term)
      .map(rangeProblem)
      .find((problem) => problem !== null) ?? null
  );
}

function comparisonProblem({ operator, sides, offset }: ComparisonTerm): ExpressionProblem | null {
  if (METHODS.some((method) => method === operator)) return emptyArgumentProblem(sides);
  if (operator === "==" || operator === "!=" || !sides.some(isText)) return rangeProblem(sides);
  const message = `${operator} compares strings character by character, so "1.10" sorts before "1.9"; use only == and != with strings`;
  return { message, offset };
}

function emptyArgumentProblem([, argument]: TermPair): ExpressionProblem | null {
  if (argument.kind !== "literal" || argument.value !== "") return null;
  return { message: "every string contains the empty string", offset: argument.offset };
}

/** Returns the problem of a literal that the field on the other side can never have. */
function rangeProblem([left, right]: TermPair): ExpressionProblem | null {
  const [field, literal] = left.kind === "field" ? [left, right] : [right, left];
  if (field.kind !== "field" || literal.kind !== "literal") return null;
  const message = valueProblem(field.field, literal.value);
  return message === null ? null : { message, offset: literal.offset };
}

function valueProblem({ name, range }: Field, value: Value): string | null {
  if (value === "") return `${name} is never empty: an empty value counts as missing, and the verdict is unknown`;
  return range === null ? null : RANGE_CHECKS[range](name, value);
}

const RANGE_CHECKS: Readonly<Record<NonNullable<FieldRange>, (name: string, value: Value) => string | null>> = {
  status(name, value) {
    if (KNOWN_STATUSES.some((status) => status === value)) return null;
    if (value === "unknown") return `${name} is never "unknown": it counts as missing, and the verdict is unknown`;
    // Sorted, so that `offline` is suggested rather than `online` for `ofline`, which is as near to both.
    const suggestion = nearest(String(value), KNOWN_STATUSES.toSorted());
    const list = KNOWN_STATUSES.join(", ");
    return suggestion === null
      ? `${JSON.stringify(value)} is not a node status; the statuses are ${list}`
      : `${JSON.stringify(value)} is not a node status; did you mean ${JSON.stringify(suggestion)}?`;
  },
  country: (name, value) =>
    /^[A-Za-z]{2}$/.test(String(value)) ? null : `${name} is two letters, so it is never ${JSON.stringify(value)}`,
  node_id: (name, value) =>
    /^node_./.test(String(value)) ? null : `${name} begins with node_, so it is never ${JSON.stringify(value)}`,
  ratio: (name, value) =>
    Number(value) >= 0 && Number(value) <= 1 ? null : `${name} is a ratio from 0 to 1; write 0.9 for 90%`,
};
