import type { Field } from "./fields.ts";
import { type Arithmetic, type Comparison, fieldsOf, type Method, type Pair, type Term, type Value } from "./term.ts";

/** Values of the fields, in the order of {@link Program.fields}; null: unknown. */
type Cells = readonly (Value | null)[];
/** Reads a value; null: unknown. */
type Read<V extends Value> = (cells: Cells) => V | null;

/** An expression that was checked, ready to run. */
export interface Program {
  readonly fields: readonly Field[];
  /**
   * The value over `values`, one a field, null where a field is unknown. Null: unknown. It is unknown where any part of it
   * is, unless the other operand of `&&` or `||` settles it, or the part is the branch of a choice that is not taken.
   */
  run(values: Cells): boolean | null;
}

/**
 * Turns a checked condition into closures over plain values. CEL checks expressions, and does not run them: its own
 * evaluator needs a BigInt for every int and an object for every instant.
 *
 * A number that is not finite (a ratio by 0, or an overflow) is unknown.
 */
export function compileProgram(condition: Term): Program {
  const fields = fieldsOf(condition);

  function read(term: Term): Read<Value> {
    switch (term.kind) {
      case "literal":
        return () => term.value;
      case "field":
        return cell(fields.indexOf(term.field));
      case "arithmetic":
        return binary(...numbers(term.sides), sums[term.operator]);
      case "ratio":
        return binary(...numbers(term.sides), (left, right) => finite(left / right));
      case "minus":
        return unary(read(term.operand) as Read<number>, (operand) => -operand);
      case "not":
        return unary(truthOf(term.operand), (operand) => !operand);
      case "logic":
        return logic(truthOf(term.sides[0]), truthOf(term.sides[1]), term.operator === "||");
      case "comparison":
        return binary(read(term.sides[0]), read(term.sides[1]), comparisons[term.operator]);
      case "method":
        return binary(textOf(term.sides[0]), textOf(term.sides[1]), methods[term.method]);
      case "choice":
        return choice(truthOf(term.test), read(term.sides[0]), read(term.sides[1]));
      case "in": {
        const list = new Set(term.list.map(({ value }) => value));
        return unary(read(term.member), (member) => list.has(member));
      }
      default:
        return term satisfies never;
    }
  }
  // CEL has checked the types of what stands here.
  const truthOf = (term: Term) => read(term) as Read<boolean>;
  const textOf = (term: Term) => read(term) as Read<string>;
  const numbers = ([left, right]: Pair) => [read(left) as Read<number>, read(right) as Read<number>] as const;

  return { fields, run: truthOf(condition) };
}

const cell =
  (index: number): Read<Value> =>
  (cells) =>
    cells[index]!;

const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);

const sums: Readonly<Record<Arithmetic, (left: number, right: number) => number | null>> = {
  "+": (left, right) => finite(left + right),
  "-": (left, right) => finite(left - right),
  "*": (left, right) => finite(left * right),
};

const comparisons: Readonly<Record<Comparison, (left: Value, right: Value) => boolean>> = {
  "==": (left, right) => left === right,
  "!=": (left, right) => left !== right,
  "<": (left, right) => left < right,
  "<=": (left, right) => left <= right,
  ">": (left, right) => left > right,
  ">=": (left, right) => left >= right,
};

const methods: Readonly<Record<Method, (text: string, other: string) => boolean>> = {
  contains: (text, other) => text.includes(other),
  startsWith: (text, other) => text.startsWith(other),
  endsWith: (text, other) => text.endsWith(other),
};

function unary<From extends Value, To extends Value>(operand: Read<From>, apply: (value: From) => To | null): Read<To> {
  return (cells) => {
    const value = operand(cells);
    return value === null ? null : apply(value);
  };
}

function binary<From extends Value, To extends Value>(
  left: Read<From>,
  right: Read<From>,
  apply: (left: From, right: From) => To | null,
): Read<To> {
  return (cells) => {
    const one = left(cells);
    if (one === null) return null;
    const other = right(cells);
    return other === null ? null : apply(one, other);
  };
}

/** `&&` and `||` of three values: an operand that is `settling` settles it, whatever the other one is. */
function logic(left: Read<boolean>, right: Read<boolean>, settling: boolean): Read<boolean> {
  return (cells) => {
    const one = left(cells);
    if (one === settling) return settling;
    const other = right(cells);
    if (other === settling) return settling;
    return one === null || other === null ? null : !settling;
  };
}

const choice =
  (test: Read<boolean>, yes: Read<Value>, no: Read<Value>): Read<Value> =>
  (cells) => {
    const is = test(cells);
    return is === null ? null : is ? yes(cells) : no(cells);
  };
