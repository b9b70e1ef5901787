import { nearest } from "../../base/nearest-word.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import type { Field, FieldRange } from "./fields.ts";
import type { ExpressionProblem } from "./type-errors.ts";
import { isText, type LiteralTerm, type Pair, parts, type Term, type Value, walk } from "./term.ts";

/**
 * The first part of an expression that would hold always, or never, whatever the node: a typo in a value, a percentage
 * where a ratio is meant, an empty text. Null: there is none.
 */
export function findImplausible(condition: Term): ExpressionProblem | null {
  for (const term of walk(condition)) {
    const problem = implausible(term);
    if (problem !== null) return problem;
  }
  return null;
}

function implausible(term: Term): ExpressionProblem | null {
  switch (term.kind) {
    case "comparison":
      return unread(term) ?? unordered(term) ?? outOfRange(term.sides);
    case "in":
      return unread(term) ?? firstOf(term.list, (literal) => outOfRange([term.member, literal]));
    case "method":
      return unread(term) ?? emptyArgument(term.sides);
    // What is true or false by itself: as a part of a condition, or as the whole of it.
    case "literal":
      return typeof term.value === "boolean" ? unread(term) : null;
    default:
      return null;
  }
}

function firstOf<T>(items: readonly T[], find: (item: T) => ExpressionProblem | null): ExpressionProblem | null {
  for (const item of items) {
    const problem = find(item);
    if (problem !== null) return problem;
  }
  return null;
}

const readsField = (term: Term): boolean => term.kind === "field" || parts(term).some(readsField);

/** A condition that reads no field says the same of every node. */
function unread(term: Term): ExpressionProblem | null {
  if (readsField(term)) return null;
  return { message: "this reads no field, so it has the same value for every node", offset: term.offset };
}

function unordered(term: Extract<Term, { kind: "comparison" }>): ExpressionProblem | null {
  if (term.operator === "==" || term.operator === "!=" || !term.sides.some(isText)) return null;
  const message = `${term.operator} compares strings character by character, so "1.10" sorts before "1.9"; use only == and != with strings`;
  return { message, offset: term.offset };
}

function emptyArgument([, argument]: Pair): ExpressionProblem | null {
  if (argument.kind !== "literal" || argument.value !== "") return null;
  return { message: "every string contains the empty string", offset: argument.offset };
}

/** A literal that the field on the other side can never have. */
function outOfRange([left, right]: Pair): ExpressionProblem | null {
  const [field, literal] = left.kind === "field" ? [left, right] : [right, left];
  if (field.kind !== "field" || literal.kind !== "literal") return null;
  const message = wrong(field.field, literal.value);
  return message === null ? null : { message, offset: (literal as LiteralTerm).offset };
}

function wrong({ name, range }: Field, value: Value): string | null {
  if (value === "") return `${name} is never an empty text: it counts as missing, and the verdict is unknown`;
  return range === null ? null : ranges[range](name, value);
}

const knownStatuses: readonly string[] = NODE_STATUSES.filter((status) => status !== "unknown");

/** Among words equally near the one that begins alike comes first: "ofline" was meant to be offline, not online. */
const byBeginning = (words: readonly string[], word: string): readonly string[] =>
  words.toSorted((one, other) => sharedBeginning(other, word) - sharedBeginning(one, word));

function sharedBeginning(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}

const ranges: Readonly<Record<NonNullable<FieldRange>, (name: string, value: Value) => string | null>> = {
  status(name, value) {
    if (knownStatuses.includes(String(value))) return null;
    if (value === "unknown") return `${name} is never "unknown": it counts as missing, and the verdict is unknown`;
    const suggestion = nearest(String(value), byBeginning(knownStatuses, String(value)));
    const list = knownStatuses.join(", ");
    return suggestion === null
      ? `${JSON.stringify(value)} is no state of a node; one is ${list}`
      : `${JSON.stringify(value)} is no state of a node; did you mean ${JSON.stringify(suggestion)}?`;
  },
  country: (name, value) =>
    /^[A-Za-z]{2}$/.test(String(value)) ? null : `${name} is two letters, so it is never ${JSON.stringify(value)}`,
  node_id: (name, value) =>
    /^node_./.test(String(value)) ? null : `${name} begins with node_, so it is never ${JSON.stringify(value)}`,
  ratio: (name, value) =>
    Number(value) >= 0 && Number(value) <= 1 ? null : `${name} is a ratio from 0 to 1, so 90 % is written 0.9`,
};
