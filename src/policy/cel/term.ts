import type { Field } from "./fields.ts";

/** A plain value. Timestamps are milliseconds since the Unix epoch, durations milliseconds; numbers are always finite. */
export type Value = string | number | boolean;

/** Operators between two values that give true or false. */
export const COMPARISONS = ["==", "!=", "<", "<=", ">", ">="] as const;
export type Comparison = (typeof COMPARISONS)[number];
/** Operators between two numbers, instants or lengths of time. */
export const ARITHMETIC = ["+", "-", "*"] as const;
export type Arithmetic = (typeof ARITHMETIC)[number];
/** Methods of a text. */
export const METHODS = ["contains", "startsWith", "endsWith"] as const;
export type Method = (typeof METHODS)[number];

/** A part of an expression, after everything that policies refuse was refused. `offset`: where it begins in the text. */
export type Term =
  | LiteralTerm
  | { readonly kind: "field"; readonly offset: number; readonly field: Field }
  | { readonly kind: "comparison"; readonly offset: number; readonly operator: Comparison; readonly sides: TermPair }
  | { readonly kind: "arithmetic"; readonly offset: number; readonly operator: Arithmetic; readonly sides: TermPair }
  | { readonly kind: "ratio"; readonly offset: number; readonly sides: TermPair }
  | { readonly kind: "minus" | "not"; readonly offset: number; readonly operand: Term }
  | { readonly kind: "logic"; readonly offset: number; readonly operator: "&&" | "||"; readonly sides: TermPair }
  | { readonly kind: "choice"; readonly offset: number; readonly test: Term; readonly sides: TermPair }
  | { readonly kind: "method"; readonly offset: number; readonly method: Method; readonly sides: TermPair }
  | { readonly kind: "in"; readonly offset: number; readonly member: Term; readonly list: readonly LiteralTerm[] };

/** Two terms, in the order of the text. Of a method: what it is called on, and its argument; of a choice: yes and no. */
export type TermPair = readonly [Term, Term];

/** A value written out; a constant `duration` or `timestamp` is one as well. */
export interface LiteralTerm {
  readonly kind: "literal";
  readonly offset: number;
  readonly value: Value;
}

/** The terms that a term is made of. */
export function childTerms(term: Term): readonly Term[] {
  switch (term.kind) {
    case "literal":
    case "field":
      return [];
    case "comparison":
    case "arithmetic":
    case "ratio":
    case "logic":
    case "method":
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

/** The term itself and all within it, in the order of the text. */
export function* walkTerms(term: Term): Generator<Term> {
  yield term;
  for (const part of childTerms(term)) yield* walkTerms(part);
}

/** Every field that the term names, once, in the order of the text. */
export function fieldsOfTerm(term: Term): readonly Field[] {
  const fields = new Set<Field>();
  for (const part of walkTerms(term)) if (part.kind === "field") fields.add(part.field);
  return [...fields];
}

/** Whether the value of the term is a text. */
export function isText(term: Term): boolean {
  if (term.kind === "literal") return typeof term.value === "string";
  if (term.kind === "field") return term.field.type === "string";
  return term.kind === "choice" && term.sides.some(isText);
}
