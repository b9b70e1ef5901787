import { PLAN_VARIANTS, pollingBudgetOf } from "./cell.ts";
import type { CellRun } from "./cell-run.ts";
import { type DetectionKind, quantile } from "./detection.ts";
import type { Result } from "./result.ts";

/** The result of a target in one cell. */
export interface TargetResult {
  readonly cell: CellRun["cell"];
  readonly target: string;
  readonly value: number;
  readonly bound: string;
  readonly isReached: boolean;
}

/** Size of the fleet to which the targets of detection by details apply. */
const DETAIL_TARGETS_NODES = 5_000;
const CREEP_TIMES_MIN = 3;
const JUMP_TIMES_MAX = 1.25;
const ORACLE_TIMES_MAX = 1.5;
const SPENT_SHARE_MIN = 0.97;
/** Maximum ratio of the calls of proxywarden to those of the even poller. */
const SAME_CALLS_MAX = 1.01;
/** About as many nodes as join and leave during a few walks. */
const INVENTORY_ERROR_MAX = 0.01;
/** Node metrics are missing only before the first walk after the start. */
export const FRESH_SHARE_MIN = 0.999;

/** Returns the median detection time of a kind of fault. */
export const medianOf = ({ latencies }: Result, kind: DetectionKind): number => quantile(latencies[kind], 0.5);

/** Checks all targets of a cell. */
export function checkTargets({ cell, results }: CellRun): readonly TargetResult[] {
  const { proxywarden, even, oracle } = results;
  const { rate, isScarce } = pollingBudgetOf(cell);
  const cap = PLAN_VARIANTS[cell.plan].limits.plan.callsPerMonth;
  const atMost = (target: string, value: number, bound: number): TargetResult => ({
    cell,
    target,
    value,
    bound: `≤ ${bound.toLocaleString("en")}`,
    isReached: value <= bound,
  });
  const atLeast = (target: string, value: number, bound: number): TargetResult => ({
    cell,
    target,
    value,
    bound: `≥ ${bound.toLocaleString("en")}`,
    isReached: value >= bound,
  });
  const targetResults = [
    atMost("calls answered with 429", proxywarden.rejected, 0),
    atMost(
      "offline nodes: ratio to the oracle",
      medianOf(proxywarden, "offline") / medianOf(oracle, "offline"),
      ORACLE_TIMES_MAX,
    ),
  ];
  if (cap !== null)
    targetResults.push(atMost("calls in a month of 30 days", Math.round(proxywarden.callsInMonth), cap));
  if (isScarce)
    targetResults.push(atLeast("used share of the polling budget", proxywarden.callsPerMinute / rate, SPENT_SHARE_MIN));
  if (cell.nodes === DETAIL_TARGETS_NODES) {
    const speedup = medianOf(even, "creep") / medianOf(proxywarden, "creep");
    targetResults.push(
      atLeast("slow rise of usage: speedup over the even poller", speedup, CREEP_TIMES_MIN),
      atMost(
        "jump without a signal: ratio to the even poller",
        medianOf(proxywarden, "jump") / medianOf(even, "jump"),
        JUMP_TIMES_MAX,
      ),
      atMost("calls: ratio to the even poller", proxywarden.callsPerMinute / even.callsPerMinute, SAME_CALLS_MAX),
    );
  }
  if (cell.conditions === "churn") {
    const { error, fresh } = proxywarden.inventory ?? { error: Number.POSITIVE_INFINITY, fresh: 0 };
    targetResults.push(
      atMost("missing or wrongly kept nodes: share of the fleet", error, INVENTORY_ERROR_MAX),
      atLeast("share of snapshots with node metrics", fresh, FRESH_SHARE_MIN),
    );
  }
  return targetResults;
}
