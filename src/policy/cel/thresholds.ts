import type { Threshold, Usage } from "../../model/policy/policy.ts";
import type { Expression } from "./expression.ts";
import type { FieldName } from "./fields.ts";
import type { Arithmetic, Comparison, Term, TermPair } from "./term.ts";

/**
 * Returns the usage thresholds of a condition: the constants that it compares a usage of the node with, and the side on
 * which the condition is more likely to hold. A comparison with anything but a constant, such as the fleet's median,
 * has none. Each threshold is returned once, in the order of the text.
 */
export function thresholdsOf({ condition }: Pick<Expression, "condition">): readonly Threshold[] {
  const thresholds = new Map<string, Threshold>();
  for (const { operator, sides, targets } of comparisonsIn(condition, ["true"])) {
    const crossing = crossingPoint(operator, sides);
    if (crossing === null) continue;
    for (const target of targets) {
      const side = target === "true" ? crossing.side : OPPOSITE_SIDE[crossing.side];
      const threshold: Threshold = { ...crossing, side };
      thresholds.set(JSON.stringify(threshold), threshold);
    }
  }
  return [...thresholds.values()];
}

/** The outcomes of a part of a condition that can make the whole condition true. */
type TargetOutcomes = readonly ("true" | "false")[];

interface FoundComparison {
  readonly operator: Comparison;
  readonly sides: TermPair;
  readonly targets: TargetOutcomes;
}

const BOTH_OUTCOMES: TargetOutcomes = ["true", "false"];

function comparisonsIn(term: Term, targets: TargetOutcomes): FoundComparison[] {
  switch (term.kind) {
    case "comparison":
      return [{ operator: term.operator, sides: term.sides, targets }];
    case "not":
      return comparisonsIn(
        term.operand,
        targets.map((target) => (target === "true" ? "false" : "true")),
      );
    case "logic":
      return term.sides.flatMap((side) => comparisonsIn(side, targets));
    case "choice":
      return [
        ...comparisonsIn(term.test, BOTH_OUTCOMES),
        ...term.sides.flatMap((side) => comparisonsIn(side, targets)),
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

/**
 * Returns the value of a usage at which a comparison changes its result, or null if it does not compare a single usage
 * with a constant.
 */
function crossingPoint(operator: Comparison, [left, right]: TermPair): Threshold | null {
  const side = SIDE_WHERE_TRUE[operator];
  const difference = addLinear(toLinear(left), toLinear(right), -1);
  if (side === null || difference === null || difference.usage === null) return null;
  const { usage, factor, constant } = difference;
  // Adding 0 turns -0 into 0.
  const value = -constant / factor + 0;
  if (!(value >= 0 && value <= 1)) return null;
  return { usage, value, side: factor > 0 ? side : OPPOSITE_SIDE[side] };
}

/** `factor * usage + constant`, or only the constant if there is no usage. */
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

/** Converts a term to a linear function of one usage, or null if it is not one. */
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

/** Adds a multiple of another term. Returns null if the sum depends on two usages. */
function addLinear(one: LinearTerm | null, other: LinearTerm | null, times: 1 | -1): LinearTerm | null {
  const addend = scaleLinear(other, times);
  if (one === null || addend === null) return null;
  if (one.usage !== null && addend.usage !== null && one.usage !== addend.usage) return null;
  return normalizeLinear(one.usage ?? addend.usage, one.factor + addend.factor, one.constant + addend.constant);
}

const scaleLinear = (number: LinearTerm | null, times: number): LinearTerm | null =>
  number === null ? null : normalizeLinear(number.usage, number.factor * times, number.constant * times);

/** Drops a usage whose factor is 0. Returns null if a number is not finite. */
function normalizeLinear(usage: Usage | null, factor: number, constant: number): LinearTerm | null {
  if (!Number.isFinite(factor) || !Number.isFinite(constant)) return null;
  return factor === 0 ? { usage: null, factor, constant } : { usage, factor, constant };
}
