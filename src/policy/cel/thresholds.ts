import type { Threshold, Usage } from "../../model/policy/threshold.ts";
import type { Expression } from "./expression.ts";
import type { FieldName } from "./fields.ts";
import type { Arithmetic, Comparison, Pair, Term } from "./term.ts";

/**
 * The lines that a condition draws through usages of a node: where a comparison of one of them with a constant changes
 * its mind, and on which side of it the condition is nearer to being true. What compares a usage with anything that is
 * not constant, such as the fleet's median, draws none. Each line once, in the order of the text.
 */
export function thresholdsOf({ condition }: Pick<Expression, "condition">): readonly Threshold[] {
  const lines = new Map<string, Threshold>();
  for (const { operator, sides, towards } of comparisonsIn(condition, ["true"])) {
    const crossing = crossingOf(operator, sides);
    if (crossing === null) continue;
    for (const wanted of towards) {
      const side = wanted === "true" ? crossing.side : opposite[crossing.side];
      const threshold: Threshold = { ...crossing, side };
      lines.set(JSON.stringify(threshold), threshold);
    }
  }
  return [...lines.values()];
}

/** What a part of a condition has to become for the whole to come nearer to being true. */
type Towards = readonly ("true" | "false")[];

interface Found {
  readonly operator: Comparison;
  readonly sides: Pair;
  readonly towards: Towards;
}

const EITHER: Towards = ["true", "false"];

function comparisonsIn(term: Term, towards: Towards): Found[] {
  switch (term.kind) {
    case "comparison":
      return [{ operator: term.operator, sides: term.sides, towards }];
    case "not":
      return comparisonsIn(
        term.operand,
        towards.map((wanted) => (wanted === "true" ? "false" : "true")),
      );
    case "logic":
      return term.sides.flatMap((side) => comparisonsIn(side, towards));
    case "choice":
      return [...comparisonsIn(term.test, EITHER), ...term.sides.flatMap((side) => comparisonsIn(side, towards))];
    default:
      return [];
  }
}

const trueSide: Readonly<Record<Comparison, Threshold["side"] | null>> = {
  ">": "above",
  ">=": "above",
  "<": "below",
  "<=": "below",
  "==": null,
  "!=": null,
};

const opposite = { above: "below", below: "above" } as const;

/** Where the comparison changes its mind; null: not at a constant value of one usage. */
function crossingOf(operator: Comparison, [left, right]: Pair): Threshold | null {
  const side = trueSide[operator];
  const difference = added(linear(left), linear(right), -1);
  if (side === null || difference === null || difference.usage === null) return null;
  const { usage, factor, constant } = difference;
  // Without the 0, nothing less nothing would be a negative zero.
  const value = -constant / factor + 0;
  if (!(value >= 0 && value <= 1)) return null;
  return { usage, value, side: factor > 0 ? side : opposite[side] };
}

/** `factor * usage + constant`; without a usage, the constant alone. */
interface Linear {
  readonly usage: Usage | null;
  readonly factor: number;
  readonly constant: number;
}

const usages: Partial<Readonly<Record<FieldName, Usage>>> = {
  "node.cpu_usage": "cpuUsage",
  "node.memory_usage": "memoryUsage",
  "node.disk_usage": "diskUsage",
};

/** A number as a multiple of one usage and a constant; null: it is no such thing. */
function linear(term: Term): Linear | null {
  switch (term.kind) {
    case "literal":
      return typeof term.value === "number" ? { usage: null, factor: 0, constant: term.value } : null;
    case "field": {
      const usage = usages[term.field.name];
      return usage === undefined ? null : { usage, factor: 1, constant: 0 };
    }
    case "minus":
      return scaled(linear(term.operand), -1);
    case "ratio": {
      const divisor = linear(term.sides[1]);
      return divisor?.usage === null ? scaled(linear(term.sides[0]), 1 / divisor.constant) : null;
    }
    case "arithmetic":
      return calculated(term.operator, linear(term.sides[0]), linear(term.sides[1]));
    default:
      return null;
  }
}

function calculated(operator: Arithmetic, left: Linear | null, right: Linear | null): Linear | null {
  if (operator === "+") return added(left, right, 1);
  if (operator === "-") return added(left, right, -1);
  if (left?.usage === null) return scaled(right, left.constant);
  return right?.usage === null ? scaled(left, right.constant) : null;
}

/** The sum of one and a multiple of another; null: of two usages it is nothing of one. */
function added(one: Linear | null, other: Linear | null, times: number): Linear | null {
  const more = scaled(other, times);
  if (one === null || more === null) return null;
  if (one.usage !== null && more.usage !== null && one.usage !== more.usage) return null;
  return normal(one.usage ?? more.usage, one.factor + more.factor, one.constant + more.constant);
}

const scaled = (number: Linear | null, times: number): Linear | null =>
  number === null ? null : normal(number.usage, number.factor * times, number.constant * times);

/** A usage that is taken no times is none. */
function normal(usage: Usage | null, factor: number, constant: number): Linear | null {
  if (!Number.isFinite(factor) || !Number.isFinite(constant)) return null;
  return factor === 0 ? { usage: null, factor, constant } : { usage, factor, constant };
}
