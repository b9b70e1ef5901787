import { fail, ok, type Result } from "../../base/result.ts";
import { findConstantParts } from "./constancy.ts";
import type { ExpressionProblem } from "./error-messages.ts";
import type { Field } from "./fields.ts";
import { parseTerm } from "./grammar.ts";
import { findImplausible, findUnlikely } from "./plausibility.ts";
import { type Arithmetic, COMPARISON_OPERATIONS, fieldsOfTerm, type Term, type TermPair, type Value } from "./term.ts";
import { checkTypes, parseCel } from "./type-check.ts";

/** A compiled condition of a policy. */
export interface Expression extends Program {
  /** The syntax tree. */
  readonly condition: Term;
  /** Returns what is valid, but probably a mistake. */
  warnings(): readonly string[];
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
  const found = [...rejected.map(({ problem }) => problem), ...checkTypes(parsed.value, text, rejected)];
  if (!term.ok || found.length > 0) return fail(found.toSorted((one, other) => one.offset - other.offset));
  const condition = term.value;
  const implausible = findImplausible(condition);
  if (implausible.length > 0) return fail(implausible);
  const warnings = () => [...findUnlikely(condition), ...findConstantParts(condition)];
  return ok({ condition, warnings, ...compileProgram(condition) });
}

/** Values of the fields, in the order of {@link Program.fields}, or null if unknown. */
type FieldValues = readonly (Value | null)[];
/** Computes a value, or null if unknown. */
type Reader<V extends Value> = (cells: FieldValues) => V | null;

/** An executable condition, or another expression with values of type `V`. */
interface Program<V extends Value = boolean> {
  /** Every field in the text, including fields that evaluation may skip; at least one. */
  readonly fields: readonly Field[];
  /**
   * Evaluates the expression. `values` has one value for each of {@link fields}, in that order, which is null if the
   * field is unknown. Timestamps are milliseconds since the Unix epoch. Returns null (unknown) if any part is unknown,
   * except where the other operand of `&&` or `||` determines the result, and except for the branch of `? :` that is
   * not taken.
   */
  evaluate(values: FieldValues): V | null;
}

/**
 * Compiles a checked expression to closures over plain values. CEL's own evaluator is not used, because it needs a
 * BigInt for every int and an object for every timestamp. A number that is not finite (a division by 0, or an overflow)
 * is unknown.
 */
export function compileProgram<V extends Value = boolean>(expression: Term): Program<V> {
  const fields = fieldsOfTerm(expression);

  function read(term: Term): Reader<Value> {
    switch (term.kind) {
      case "literal":
        return () => term.value;
      case "field": {
        const index = fields.indexOf(term.field);
        return (cells) => cells[index]!;
      }
      case "arithmetic": {
        const operation = ARITHMETIC_OPERATIONS[term.operator];
        return binary(...numbers(term.sides), (left, right) => finiteOrNull(operation(left, right)));
      }
      case "minus":
        return unary(read(term.operand) as Reader<number>, (operand) => -operand);
      case "not":
        return unary(truthOf(term.operand), (operand) => !operand);
      case "logic":
        return threeValuedLogic(truthOf(term.sides[0]), truthOf(term.sides[1]), term.operator === "||");
      case "comparison":
        return binary(read(term.sides[0]), read(term.sides[1]), COMPARISON_OPERATIONS[term.operator]);
      case "choice":
        return conditional(truthOf(term.test), read(term.sides[0]), read(term.sides[1]));
      case "in": {
        const list = new Set(term.list.map(({ value }) => value));
        return unary(read(term.member), (member) => list.has(member));
      }
      default:
        return term satisfies never;
    }
  }
  // CEL has checked these types.
  const truthOf = (term: Term) => read(term) as Reader<boolean>;
  const numbers = ([left, right]: TermPair) => [read(left) as Reader<number>, read(right) as Reader<number>] as const;

  return { fields, evaluate: read(expression) as Reader<V> };
}

const finiteOrNull = (value: number): number | null => (Number.isFinite(value) ? value : null);

const ARITHMETIC_OPERATIONS: Readonly<Record<Arithmetic, (left: number, right: number) => number>> = {
  "+": (left, right) => left + right,
  "-": (left, right) => left - right,
  "*": (left, right) => left * right,
  ratio: (left, right) => left / right,
};

function unary<From extends Value, To extends Value>(
  operand: Reader<From>,
  apply: (value: From) => To | null,
): Reader<To> {
  return (cells) => {
    const value = operand(cells);
    return value === null ? null : apply(value);
  };
}

function binary<From extends Value, To extends Value>(
  left: Reader<From>,
  right: Reader<From>,
  apply: (left: From, right: From) => To | null,
): Reader<To> {
  return (cells) => {
    const one = left(cells);
    if (one === null) return null;
    const other = right(cells);
    return other === null ? null : apply(one, other);
  };
}

/** Evaluates `&&` or `||` with three values. An operand with the `dominant` value determines the result. */
function threeValuedLogic(left: Reader<boolean>, right: Reader<boolean>, dominant: boolean): Reader<boolean> {
  return (cells) => {
    const one = left(cells);
    if (one === dominant) return dominant;
    const other = right(cells);
    if (other === dominant) return dominant;
    return one === null || other === null ? null : !dominant;
  };
}

const conditional =
  (test: Reader<boolean>, yes: Reader<Value>, no: Reader<Value>): Reader<Value> =>
  (cells) => {
    const is = test(cells);
    return is === null ? null : is ? yes(cells) : no(cells);
  };
