import { type DurationMs, MINUTE_MS } from "../../src/base/duration.ts";
import type { EpochMs } from "../../src/model/time.ts";
import { type Cell, meansOf, TERMS } from "./cell.ts";
import { LATENCY_MS } from "./pollers.ts";
import { type Fault, type Script, START_MS } from "./script.ts";
import { type Showing, showingOf } from "./showing.ts";

/**
 * The lower bound: it knows where a fault is, and reads the right thing at the first moment that the limits, the reserve
 * and the month, spent evenly, permit. Of the list it may read no more often than the wish says, and than whole walks
 * can be paid for if nothing else is read: its first page is the right one.
 */
export function runOracle(cell: Cell, script: Script): Showing {
  const { rate, fastestWalkMs } = meansOf(cell);
  const detailEveryMs = MINUTE_MS / rate;
  const permitted = (everyMs: DurationMs, from: EpochMs): EpochMs =>
    START_MS + Math.ceil((from - START_MS) / everyMs) * everyMs;
  const latency = (fault: Fault): DurationMs => {
    const everyMs = fault.strain === null ? fastestWalkMs : detailEveryMs;
    for (let at = permitted(everyMs, fault.visibleAt); at < fault.endsAt; at += everyMs) {
      if (script.shows(fault, at)) return at + LATENCY_MS - fault.visibleAt;
    }
    return Number.POSITIVE_INFINITY;
  };
  const of = (kind: Fault["kind"]) => script.faults.filter((fault) => fault.kind === kind).map(latency);
  return showingOf({
    latencies: {
      offline: of("offline"),
      creep: of("creep"),
      signalled: of("signalled"),
      jump: script.jumps.map(({ visibleAt }) => permitted(detailEveryMs, visibleAt) + LATENCY_MS - visibleAt),
    },
    calls: script.faults.length,
    refused: 0,
    spanMs: script.timetable.endMs,
    callsPerMonth: TERMS[cell.terms].limits.plan.callsPerMonth,
    ages: [],
    inventory: null,
  });
}
