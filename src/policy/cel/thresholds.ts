import type { Threshold, Usage } from "../../model/policy/policy.ts";
import { compileProgram, type Expression } from "./expression.ts";
import type { Comparison, Term, TermPair } from "./term.ts";

/**
 * Returns the usage thresholds of a condition: the constants that it compares a usage of the node with, and the side on
 * which the condition is more likely to hold. A comparison with anything but a constant, such as the fleet's median,
 * has none. Each threshold is returned once, in the order of the text.
 */
export function thresholdsOf({ condition }: Pick<Expression, "condition">): readonly Threshold[] {
  const found = thresholdsIn(condition, [true]);
  return [...new Map(found.map((threshold) => [JSON.stringify(threshold), threshold])).values()];
}

/** Returns the thresholds in a part of a condition. The `outcomes` of this part can make the whole condition true. */
function thresholdsIn(term: Term, outcomes: readonly boolean[]): Threshold[] {
  switch (term.kind) {
    case "comparison": {
      const crossing = crossingPoint(term.operator, term.sides);
      if (crossing === null) return [];
      return outcomes.map((isTrue) => (isTrue ? crossing : { ...crossing, side: OPPOSITE_SIDE[crossing.side] }));
    }
    case "not":
      return thresholdsIn(
        term.operand,
        outcomes.map((isTrue) => !isTrue),
      );
    case "logic":
      return term.sides.flatMap((side) => thresholdsIn(side, outcomes));
    case "choice":
      return [...thresholdsIn(term.test, [true, false]), ...term.sides.flatMap((side) => thresholdsIn(side, outcomes))];
    default:
      return [];
  }
}

const SIDE_WHERE_TRUE: Readonly<Partial<Record<Comparison, Threshold["side"]>>> = {
  ">": "above",
  ">=": "above",
  "<": "below",
  "<=": "below",
};

const OPPOSITE_SIDE = { above: "below", below: "above" } as const;

const USAGE_FIELDS: Readonly<Partial<Record<string, Usage>>> = {
  "node.cpu_usage": "cpuUsage",
  "node.memory_usage": "memoryUsage",
  "node.disk_usage": "diskUsage",
};

/** How far a linear function may be from a line because of rounding, as a share of its slope. */
const ROUNDING_MAX = 1e-9;

/**
 * Returns the value of a usage at which a comparison changes its result, or null if it does not compare a linear
 * function of a single usage with a constant. The difference of both sides is evaluated at three usages, which shows
 * whether it is linear.
 */
function crossingPoint(operator: Comparison, sides: TermPair): Threshold | null {
  const { fields, evaluate } = compileProgram<number>({ kind: "arithmetic", offset: 0, operator: "-", sides });
  const side = SIDE_WHERE_TRUE[operator];
  const usage = fields.length === 1 ? USAGE_FIELDS[fields[0]!.name] : undefined;
  if (side === undefined || usage === undefined) return null;
  const [atZero, atHalf, atOne] = [evaluate([0]), evaluate([0.5]), evaluate([1])];
  if (atZero === null || atHalf === null || atOne === null) return null;
  const slope = atOne - atZero;
  // This is also true if the slope is 0, or not a number.
  if (!(Math.abs(atZero + atOne - 2 * atHalf) < ROUNDING_MAX * Math.abs(slope))) return null;
  // Adding 0 turns -0 into 0.
  const value = -atZero / slope + 0;
  return value >= 0 && value <= 1 ? { usage, value, side: slope > 0 ? side : OPPOSITE_SIDE[side] } : null;
}
