import { type DurationMs, MINUTE_MS } from "../../src/base/duration.ts";
import type { EpochMs } from "../../src/model/time.ts";
import { type Cell, PLAN_VARIANTS, pollingBudgetOf } from "./cell.ts";
import { LATENCY_MS } from "./pollers.ts";
import { type Result, toResult } from "./result.ts";
import { type Fault, type Script, START_MS } from "./script.ts";

/**
 * The lower bound. The oracle knows where a fault is, and reads that node as soon as the limits, the reserve and the
 * month (spread evenly) allow. It reads the list at most at the requested interval, and at most as often as whole walks
 * are affordable if nothing else is read. It always reads the page with the fault first.
 */
export function runOracle(cell: Cell, script: Script): Result {
  const { rate, fastestWalkMs } = pollingBudgetOf(cell);
  const detailEveryMs = MINUTE_MS / rate;
  const permitted = (everyMs: DurationMs, from: EpochMs): EpochMs =>
    START_MS + Math.ceil((from - START_MS) / everyMs) * everyMs;
  const latency = (fault: Fault): DurationMs => {
    const everyMs = fault.load === null ? fastestWalkMs : detailEveryMs;
    for (let at = permitted(everyMs, fault.visibleAt); at < fault.endsAt; at += everyMs) {
      if (script.shows(fault, at)) return at + LATENCY_MS - fault.visibleAt;
    }
    return Number.POSITIVE_INFINITY;
  };
  const of = (kind: Fault["kind"]) => script.faults.filter((fault) => fault.kind === kind).map(latency);
  return toResult({
    latencies: {
      offline: of("offline"),
      creep: of("creep"),
      signalled: of("signalled"),
      jump: script.jumps.map(({ visibleAt }) => permitted(detailEveryMs, visibleAt) + LATENCY_MS - visibleAt),
    },
    calls: script.faults.length,
    rejected: 0,
    spanMs: script.timetable.endMs,
    callsPerMonth: PLAN_VARIANTS[cell.plan].limits.plan.callsPerMonth,
    ages: [],
    inventory: null,
  });
}
