import type { Field } from "./fields.ts";

/** A value. Timestamps are in milliseconds since the Unix epoch, durations in milliseconds. Numbers are finite. */
export type Value = string | number | boolean;

/** Operators that compare two values. */
export const COMPARISONS = ["==", "!=", "<", "<=", ">", ">="] as const;
/** Operators on two numbers, timestamps or durations. */
export const ARITHMETIC = ["+", "-", "*"] as const;
export type Arithmetic = (typeof ARITHMETIC)[number] | "ratio";
/** Methods of a string. */
export const METHODS = ["contains", "startsWith", "endsWith"] as const;
export type Comparison = (typeof COMPARISONS)[number] | (typeof METHODS)[number];

/** What each comparison of two values returns. */
export const COMPARISON_OPERATIONS: Readonly<Record<Comparison, (left: Value, right: Value) => boolean>> = {
  "==": (left, right) => left === right,
  "!=": (left, right) => left !== right,
  "<": (left, right) => left < right,
  "<=": (left, right) => left <= right,
  ">": (left, right) => left > right,
  ">=": (left, right) => left >= right,
  // CEL has checked that these are strings.
  contains: (text, other) => String(text).includes(String(other)),
  startsWith: (text, other) => String(text).startsWith(String(other)),
  endsWith: (text, other) => String(text).endsWith(String(other)),
};

/** A node of the syntax tree, which has only supported syntax. `offset` is its index in the text. */
export type Term =
  | LiteralTerm
  | { readonly kind: "field"; readonly offset: number; readonly field: Field }
  | ComparisonTerm
  | { readonly kind: "arithmetic"; readonly offset: number; readonly operator: Arithmetic; readonly sides: TermPair }
  | { readonly kind: "minus" | "not"; readonly offset: number; readonly operand: Term }
  | { readonly kind: "logic"; readonly offset: number; readonly operator: "&&" | "||"; readonly sides: TermPair }
  | { readonly kind: "choice"; readonly offset: number; readonly test: Term; readonly sides: TermPair }
  | { readonly kind: "in"; readonly offset: number; readonly member: Term; readonly list: readonly LiteralTerm[] };

/** An operator or method that compares two values. */
export interface ComparisonTerm {
  readonly kind: "comparison";
  readonly offset: number;
  readonly operator: Comparison;
  readonly sides: TermPair;
}

/**
 * Two terms, in the order of the text. For a method they are the receiver and the argument; for a choice the values for
 * true and false.
 */
export type TermPair = readonly [Term, Term];

/** A constant, which may be written as `duration("10m")` or `timestamp("…")`. */
export interface LiteralTerm {
  readonly kind: "literal";
  readonly offset: number;
  readonly value: Value;
  /** Whether it is a time, not a duration or another number. Absent means false. */
  readonly isTimestamp?: boolean;
}

/** Returns the direct children of a term. */
export function childTerms(term: Term): readonly Term[] {
  switch (term.kind) {
    case "literal":
    case "field":
      return [];
    case "comparison":
    case "arithmetic":
    case "logic":
      return term.sides;
    case "choice":
      return [term.test, ...term.sides];
    case "minus":
    case "not":
      return [term.operand];
    case "in":
      return [term.member, ...term.list];
    default:
      return term satisfies never;
  }
}

/** Yields a term and all its descendants, in the order of the text. */
export function* walkTerms(term: Term): Generator<Term> {
  yield term;
  for (const part of childTerms(term)) yield* walkTerms(part);
}

/** Returns every field that a term reads, once, in the order of the text. */
export function fieldsOfTerm(term: Term): readonly Field[] {
  const fields = new Set<Field>();
  for (const part of walkTerms(term)) if (part.kind === "field") fields.add(part.field);
  return [...fields];
}

/** Returns whether the value of a term is a string. */
export function isText(term: Term): boolean {
  if (term.kind === "literal") return typeof term.value === "string";
  if (term.kind === "field") return term.field.type === "string";
  return term.kind === "choice" && term.sides.some(isText);
}
