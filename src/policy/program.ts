import type { Field } from "./field.ts";
import { type Arithmetic, type Comparison, fieldsOf, type Method, type Pair, type Term, type Value } from "./term.ts";

/** Values of the fields, in the order of {@link Program.fields}; what is computed from them stands behind them. */
type Cells = readonly Value[];
type Read<V extends Value> = (cells: Cells) => V;

/** An expression that was checked, ready to run. */
export interface Program {
  readonly fields: readonly Field[];
  /** What it comes to over `values`, one a field; null: some number in it has no finite value, so nothing is known. */
  run(values: readonly Value[]): boolean | null;
}

/**
 * Turns a checked condition into closures over plain values. CEL checks expressions, and does not run them: its own
 * evaluator wants a BigInt for every int and an object for every instant, and answers `false && 1 / 0` with false.
 *
 * Every sum and ratio has a cell of its own and is worked out first, inner ones before outer ones, wherever it stands.
 * One that is not finite ends the run, so that no branch that was not taken can hide it.
 */
export function compileProgram(condition: Term): Program {
  const fields = fieldsOf(condition);
  const computed: Read<number>[] = [];
  const computedCell = (number: Read<number>): Read<Value> => cell(fields.length + computed.push(number) - 1);

  function read(term: Term): Read<Value> {
    switch (term.kind) {
      case "literal":
        return () => term.value;
      case "field":
        return cell(fields.indexOf(term.field));
      case "arithmetic":
        return computedCell(sums[term.operator](...numbers(term.sides)));
      case "ratio":
        return computedCell(quotient(...numbers(term.sides)));
      case "minus":
        return computedCell(negated(numberOf(term.operand)));
      case "not":
        return negation(truthOf(term.operand));
      case "logic": {
        const [left, right] = [truthOf(term.sides[0]), truthOf(term.sides[1])];
        return term.operator === "&&" ? (cells) => left(cells) && right(cells) : (cells) => left(cells) || right(cells);
      }
      case "comparison":
        return comparisons[term.operator](read(term.sides[0]), read(term.sides[1]));
      case "method":
        return methods[term.method](textOf(term.sides[0]), textOf(term.sides[1]));
      case "choice":
        return choice(truthOf(term.test), read(term.sides[0]), read(term.sides[1]));
      case "in":
        return membership(read(term.member), new Set(term.list.map(({ value }) => value)));
      default:
        return term satisfies never;
    }
  }
  // CEL has checked the types of what stands here.
  const truthOf = (term: Term) => read(term) as Read<boolean>;
  const numberOf = (term: Term) => read(term) as Read<number>;
  const textOf = (term: Term) => read(term) as Read<string>;
  const numbers = ([left, right]: Pair) => [numberOf(left), numberOf(right)] as const;

  const holds = truthOf(condition);
  return {
    fields,
    run(values) {
      if (computed.length === 0) return holds(values);
      const cells = values.slice();
      for (const compute of computed) {
        const number = compute(cells);
        if (!Number.isFinite(number)) return null;
        cells.push(number);
      }
      return holds(cells);
    },
  };
}

type Binary<From extends Value, To extends Value> = (left: Read<From>, right: Read<From>) => Read<To>;

const cell =
  (index: number): Read<Value> =>
  (cells) =>
    cells[index]!;

const sums: Readonly<Record<Arithmetic, Binary<number, number>>> = {
  "+": (left, right) => (cells) => left(cells) + right(cells),
  "-": (left, right) => (cells) => left(cells) - right(cells),
  "*": (left, right) => (cells) => left(cells) * right(cells),
};

// By 0 it is NaN or infinite, so it ends the run.
const quotient: Binary<number, number> = (left, right) => (cells) => left(cells) / right(cells);

const comparisons: Readonly<Record<Comparison, Binary<Value, boolean>>> = {
  "==": (left, right) => (cells) => left(cells) === right(cells),
  "!=": (left, right) => (cells) => left(cells) !== right(cells),
  "<": (left, right) => (cells) => left(cells) < right(cells),
  "<=": (left, right) => (cells) => left(cells) <= right(cells),
  ">": (left, right) => (cells) => left(cells) > right(cells),
  ">=": (left, right) => (cells) => left(cells) >= right(cells),
};

const methods: Readonly<Record<Method, Binary<string, boolean>>> = {
  contains: (text, other) => (cells) => text(cells).includes(other(cells)),
  startsWith: (text, other) => (cells) => text(cells).startsWith(other(cells)),
  endsWith: (text, other) => (cells) => text(cells).endsWith(other(cells)),
};

const negated =
  (operand: Read<number>): Read<number> =>
  (cells) =>
    -operand(cells);

const negation =
  (operand: Read<boolean>): Read<boolean> =>
  (cells) =>
    !operand(cells);

const choice =
  (test: Read<boolean>, yes: Read<Value>, no: Read<Value>): Read<Value> =>
  (cells) =>
    test(cells) ? yes(cells) : no(cells);

const membership =
  (member: Read<Value>, list: ReadonlySet<Value>): Read<boolean> =>
  (cells) =>
    list.has(member(cells));
