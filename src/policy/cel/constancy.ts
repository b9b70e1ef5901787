import { KNOWN_STATUSES } from "../../model/node.ts";
import type { Field } from "./fields.ts";
import { COMPARISON_OPERATIONS, childTerms, fieldsOfTerm, METHODS, type Term, type Value } from "./term.ts";

type Comparing = Extract<Term, { kind: "comparison" | "in" }>;

/** A comparison, as a function of the value of what it compares with constants. */
interface Atom {
  /** A field or another expression. It is taken to be independent of all others. */
  readonly subject: Term;
  /** The same for the same subject elsewhere in the condition. */
  readonly key: string;
  /** The values between which the result changes. */
  readonly constants: readonly Value[];
  readonly holdsFor: (value: Value) => boolean;
}

type Atoms = ReadonlyMap<Term, Atom>;

/** Maximum number of combinations of values, times the number of atoms. They take less than a millisecond. */
const EVALUATIONS_MAX = 10_000;
/** A text that no condition names. */
const OTHER_TEXT = "\0";

/**
 * Returns warnings about the outermost parts of a condition that never hold, or that always hold while their fields are
 * known, because of the constants that they compare with. Tries all combinations of values that the constants
 * distinguish, including those that no node can have. Returns no warnings about parts with too many combinations.
 */
export function findConstantParts(condition: Term): readonly string[] {
  const atoms: Atoms = new Map([...atomTerms(condition)].map((term) => [term, atomOf(term)]));
  return warningsAbout(condition, atoms, "");
}

/**
 * Returns whether a condition can be true while the fields for which `isUnknown` returns true are unknown. Every
 * comparison of other fields is taken to have both results.
 */
export const canHold = (condition: Term, isUnknown: (field: Field) => boolean): boolean =>
  canBe(true, condition, isUnknown);

function canBe(wanted: boolean, term: Term, isUnknown: (field: Field) => boolean): boolean {
  const can = (result: boolean, part: Term) => canBe(result, part, isUnknown);
  switch (term.kind) {
    case "not":
      return can(!wanted, term.operand);
    case "choice":
      return (
        (can(true, term.test) && can(wanted, term.sides[0])) || (can(false, term.test) && can(wanted, term.sides[1]))
      );
    case "logic": {
      const needsBoth = (term.operator === "&&") === wanted;
      return needsBoth ? term.sides.every((side) => can(wanted, side)) : term.sides.some((side) => can(wanted, side));
    }
    default:
      return !fieldsOfTerm(term).some(isUnknown);
  }
}

/** Returns the warnings about a condition, or about its parts if it is not constant itself. */
function warningsAbout(condition: Term, atoms: Atoms, subject: string): readonly string[] {
  const results = resultsOf(condition, atoms);
  if (results?.size !== 1) {
    return truthParts(condition).flatMap((part) => warningsAbout(part, atoms, "has a part that "));
  }
  const result = results.has(true) ? "always holds" : "never holds";
  const fields = fieldsOfTerm(condition).map(({ name }) => name);
  return [`${subject}${result}, whatever the value of ${fields.join(", ")}`];
}

/** Returns the conditions that a condition is made of. Empty for a comparison. */
const truthParts = (term: Term): readonly Term[] =>
  term.kind === "logic" || term.kind === "not" || term.kind === "choice" ? childTerms(term) : [];

/** Yields the comparisons that a condition is made of. */
function* atomTerms(term: Term): Generator<Comparing> {
  if (term.kind === "comparison" || term.kind === "in") yield term;
  for (const part of truthParts(term)) yield* atomTerms(part);
}

/** Returns the results of a condition over all combinations of values, or null if there are too many. */
function resultsOf(condition: Term, atoms: Atoms): ReadonlySet<boolean> | null {
  const own = [...atomTerms(condition)].map((term) => atoms.get(term)!);
  const samples = [...Map.groupBy(own, ({ key }) => key)].map(([key, group]) => [key, samplesOf(group)] as const);
  const combinations = samples.reduce((product, [, values]) => product * values.length, 1);
  if (combinations * own.length > EVALUATIONS_MAX) return null;
  const results = new Set<boolean>();
  for (let combination = 0; combination < combinations && results.size < 2; combination++) {
    let rest = combination;
    const values = new Map<string, Value>();
    for (const [key, list] of samples) {
      values.set(key, list[rest % list.length]!);
      rest = Math.floor(rest / list.length);
    }
    results.add(evaluate(condition, atoms, values));
  }
  return results;
}

function evaluate(term: Term, atoms: Atoms, values: ReadonlyMap<string, Value>): boolean {
  const holds = (part: Term): boolean => evaluate(part, atoms, values);
  switch (term.kind) {
    case "not":
      return !holds(term.operand);
    case "choice":
      return holds(holds(term.test) ? term.sides[0] : term.sides[1]);
    case "logic":
      return term.operator === "&&" ? term.sides.every(holds) : term.sides.some(holds);
    default: {
      const { key, holdsFor } = atoms.get(term)!;
      return holdsFor(values.get(key)!);
    }
  }
}

function atomOf(term: Comparing): Atom {
  if (term.kind === "in") {
    const constants = term.list.map(({ value }) => value);
    return atom(term.member, constants, (value) => constants.includes(value));
  }
  const { offset, operator, sides } = term;
  const [left, right] = sides;
  const compare = COMPARISON_OPERATIONS[operator];
  // The result of a text search is a separate subject.
  if (METHODS.some((method) => method === operator)) return atom(term, [true, false], (value) => value === true);
  if (right.kind === "literal") return atom(left, [right.value], (value) => compare(value, right.value));
  if (left.kind === "literal") return atom(right, [left.value], (value) => compare(left.value, value));
  return atom({ kind: "arithmetic", offset, operator: "-", sides }, [0], (value) => compare(value, 0));
}

const atom = (subject: Term, constants: readonly Value[], holdsFor: Atom["holdsFor"]): Atom => ({
  subject,
  key: JSON.stringify(subject, (name, value: unknown) => (name === "offset" ? undefined : value)),
  constants,
  holdsFor,
});

/** Returns one value for each case that the atoms of one subject distinguish. */
function samplesOf(atoms: readonly Atom[]): readonly Value[] {
  const { subject } = atoms[0]!;
  const field = subject.kind === "field" ? subject.field : null;
  if (field?.range === "status") return KNOWN_STATUSES;
  const constants = [...new Set(atoms.flatMap((atom) => atom.constants))];
  if (typeof constants[0] === "boolean") return constants;
  if (typeof constants[0] === "string") return [...constants, OTHER_TEXT];
  const numbers = constants.map(Number).toSorted((a, b) => a - b);
  const between = numbers.slice(1).map((number, index) => (number + numbers[index]!) / 2);
  // No field with a number is ever negative; a difference of fields may be.
  const lowest = field?.type === "int" || field?.type === "double" ? 0 : Number.NEGATIVE_INFINITY;
  return [
    lowest,
    ...numbers.filter((value) => value >= lowest),
    ...between.filter((value) => value >= lowest),
    Number.POSITIVE_INFINITY,
  ];
}
