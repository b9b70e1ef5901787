import type { Threshold, Usage } from "../../model/policy/policy.ts";
import type { Expression } from "./expression.ts";
import type { FieldName } from "./fields.ts";
import type { Arithmetic, Comparison, Term, TermPair } from "./term.ts";

/**
 * The lines that a condition draws through usages of a node: where a comparison of one of them with a constant changes
 * its mind, and on which side of it the condition is nearer to being true. What compares a usage with anything that is
 * not constant, such as the fleet's median, draws none. Each line once, in the order of the text.
 */
export function thresholdsOf({ condition }: Pick<Expression, "condition">): readonly Threshold[] {
  const lines = new Map<string, Threshold>();
  for (const { operator, sides, targets: towards } of comparisonsIn(condition, ["true"])) {
    const crossing = crossingPoint(operator, sides);
    if (crossing === null) continue;
    for (const wanted of towards) {
      const side = wanted === "true" ? crossing.side : OPPOSITE_SIDE[crossing.side];
      const threshold: Threshold = { ...crossing, side };
      lines.set(JSON.stringify(threshold), threshold);
    }
  }
  return [...lines.values()];
}

/** What a part of a condition has to become for the whole to come nearer to being true. */
type TargetOutcomes = readonly ("true" | "false")[];

interface FoundComparison {
  readonly operator: Comparison;
  readonly sides: TermPair;
  readonly targets: TargetOutcomes;
}

const BOTH_OUTCOMES: TargetOutcomes = ["true", "false"];

function comparisonsIn(term: Term, towards: TargetOutcomes): FoundComparison[] {
  switch (term.kind) {
    case "comparison":
      return [{ operator: term.operator, sides: term.sides, targets: towards }];
    case "not":
      return comparisonsIn(
        term.operand,
        towards.map((wanted) => (wanted === "true" ? "false" : "true")),
      );
    case "logic":
      return term.sides.flatMap((side) => comparisonsIn(side, towards));
    case "choice":
      return [
        ...comparisonsIn(term.test, BOTH_OUTCOMES),
        ...term.sides.flatMap((side) => comparisonsIn(side, towards)),
      ];
    default:
      return [];
  }
}

const SIDE_WHERE_TRUE: Readonly<Record<Comparison, Threshold["side"] | null>> = {
  ">": "above",
  ">=": "above",
  "<": "below",
  "<=": "below",
  "==": null,
  "!=": null,
};

const OPPOSITE_SIDE = { above: "below", below: "above" } as const;

/** Where the comparison changes its mind; null: not at a constant value of one usage. */
function crossingPoint(operator: Comparison, [left, right]: TermPair): Threshold | null {
  const side = SIDE_WHERE_TRUE[operator];
  const difference = addLinear(toLinear(left), toLinear(right), -1);
  if (side === null || difference === null || difference.usage === null) return null;
  const { usage, factor, constant } = difference;
  // Without the 0, nothing less nothing would be a negative zero.
  const value = -constant / factor + 0;
  if (!(value >= 0 && value <= 1)) return null;
  return { usage, value, side: factor > 0 ? side : OPPOSITE_SIDE[side] };
}

/** `factor * usage + constant`; without a usage, the constant alone. */
interface LinearTerm {
  readonly usage: Usage | null;
  readonly factor: number;
  readonly constant: number;
}

const USAGE_FIELDS: Partial<Readonly<Record<FieldName, Usage>>> = {
  "node.cpu_usage": "cpuUsage",
  "node.memory_usage": "memoryUsage",
  "node.disk_usage": "diskUsage",
};

/** A number as a multiple of one usage and a constant; null: it is no such thing. */
function toLinear(term: Term): LinearTerm | null {
  switch (term.kind) {
    case "literal":
      return typeof term.value === "number" ? { usage: null, factor: 0, constant: term.value } : null;
    case "field": {
      const usage = USAGE_FIELDS[term.field.name];
      return usage === undefined ? null : { usage, factor: 1, constant: 0 };
    }
    case "minus":
      return scaleLinear(toLinear(term.operand), -1);
    case "ratio": {
      const divisor = toLinear(term.sides[1]);
      return divisor?.usage === null ? scaleLinear(toLinear(term.sides[0]), 1 / divisor.constant) : null;
    }
    case "arithmetic":
      return combineLinear(term.operator, toLinear(term.sides[0]), toLinear(term.sides[1]));
    default:
      return null;
  }
}

function combineLinear(operator: Arithmetic, left: LinearTerm | null, right: LinearTerm | null): LinearTerm | null {
  if (operator === "+") return addLinear(left, right, 1);
  if (operator === "-") return addLinear(left, right, -1);
  if (left?.usage === null) return scaleLinear(right, left.constant);
  return right?.usage === null ? scaleLinear(left, right.constant) : null;
}

/** The sum of one and a multiple of another; null: of two usages it is nothing of one. */
function addLinear(one: LinearTerm | null, other: LinearTerm | null, times: number): LinearTerm | null {
  const more = scaleLinear(other, times);
  if (one === null || more === null) return null;
  if (one.usage !== null && more.usage !== null && one.usage !== more.usage) return null;
  return normalizeLinear(one.usage ?? more.usage, one.factor + more.factor, one.constant + more.constant);
}

const scaleLinear = (number: LinearTerm | null, times: number): LinearTerm | null =>
  number === null ? null : normalizeLinear(number.usage, number.factor * times, number.constant * times);

/** A usage that is taken no times is none. */
function normalizeLinear(usage: Usage | null, factor: number, constant: number): LinearTerm | null {
  if (!Number.isFinite(factor) || !Number.isFinite(constant)) return null;
  return factor === 0 ? { usage: null, factor, constant } : { usage, factor, constant };
}
