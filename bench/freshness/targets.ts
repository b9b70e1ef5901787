import { meansOf, TERMS } from "./cell.ts";
import type { Contest } from "./contest.ts";
import { type Kind, quantile } from "./finding.ts";
import type { Showing } from "./showing.ts";

/** What must be reached, of one cell. */
export interface Judgement {
  readonly cell: Contest["cell"];
  readonly target: string;
  readonly value: number;
  readonly bound: string;
  readonly isReached: boolean;
}

/** Where the issue of detection by details is decided. */
const NODES_JUDGED = 5_000;
const CREEP_TIMES_MIN = 3;
const JUMP_TIMES_MAX = 1.25;
const ORACLE_TIMES_MAX = 1.5;
const SPENT_SHARE_MIN = 0.97;
/** "On the same calls": it may not make more than so many times those of the even poller. */
const SAME_CALLS_MAX = 1.01;
/** Some walks' worth of joins and leaves: an inventory that follows the fleet is never further from it. */
const INVENTORY_ERROR_MAX = 0.01;
/** Share of the time in which node metrics are shown: all but the moment before the first walk after the start. */
const FRESH_SHARE_MIN = 0.999;

/** The median of how long that kind of fault took to be found. */
export const medianOf = ({ latencies }: Showing, kind: Kind): number => quantile(latencies[kind], 0.5);

/** Everything that must be reached in a cell. */
export function judge({ cell, showings }: Contest): readonly Judgement[] {
  const { proxywarden: ours, even, oracle } = showings;
  const { rate, isScarce } = meansOf(cell);
  const cap = TERMS[cell.terms].limits.plan.callsPerMonth;
  const atMost = (target: string, value: number, bound: number): Judgement => ({
    ...{ cell, target, value, bound: `≤ ${bound.toLocaleString("en")}` },
    isReached: value <= bound,
  });
  const atLeast = (target: string, value: number, bound: number): Judgement => ({
    ...{ cell, target, value, bound: `≥ ${bound.toLocaleString("en")}` },
    isReached: value >= bound,
  });
  const judgements = [
    atMost("calls answered 429", ours.refused, 0),
    atMost(
      "offline nodes: times the oracle",
      medianOf(ours, "offline") / medianOf(oracle, "offline"),
      ORACLE_TIMES_MAX,
    ),
  ];
  if (cap !== null) judgements.push(atMost("calls in a month of 30 days", Math.round(ours.callsAMonth), cap));
  if (isScarce)
    judgements.push(atLeast("share spent of what polling may spend", ours.callsAMinute / rate, SPENT_SHARE_MIN));
  if (cell.nodes === NODES_JUDGED) {
    const faster = medianOf(even, "creep") / medianOf(ours, "creep");
    judgements.push(
      atLeast("creeping usage: times faster than round robin", faster, CREEP_TIMES_MIN),
      atMost("jump without a sign: times round robin", medianOf(ours, "jump") / medianOf(even, "jump"), JUMP_TIMES_MAX),
      atMost("calls: times those of round robin", ours.callsAMinute / even.callsAMinute, SAME_CALLS_MAX),
    );
  }
  if (cell.conditions === "churn") {
    const { error, fresh } = ours.inventory ?? { error: Number.POSITIVE_INFINITY, fresh: 0 };
    judgements.push(
      atMost("nodes missing or wrongly kept: share of the fleet", error, INVENTORY_ERROR_MAX),
      atLeast("share of the time in which node metrics are shown", fresh, FRESH_SHARE_MIN),
    );
  }
  return judgements;
}
