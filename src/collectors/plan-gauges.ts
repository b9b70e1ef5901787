import { SECOND_MS } from "../base/duration.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import { COLLECTORS } from "../model/snapshot.ts";
import type { Plan } from "../scheduling/planner.ts";
import { PLAN_BOUNDS } from "../scheduling/polling-capacity.ts";

/** Sets the gauges of the plan. */
export function setPlanGauges(planned: Plan, metrics: DaemonMetrics): void {
  for (const collector of COLLECTORS) {
    const { requestedMs, pacedMs, freshMs, callsPerMinute, boundBy, age } = planned[collector] ?? NOT_COLLECTED;
    metrics.set("proxywarden_plan_interval_seconds", { collector }, pacedMs / SECOND_MS);
    metrics.set("proxywarden_plan_fresh_seconds", { collector }, freshMs / SECOND_MS);
    metrics.set("proxywarden_plan_stretch_ratio", { collector }, pacedMs / requestedMs);
    metrics.set("proxywarden_plan_calls_per_minute", { collector }, callsPerMinute);
    metrics.set("proxywarden_plan_age_seconds", { collector, age: "median" }, finiteOr(age.medianMs) / SECOND_MS);
    metrics.set("proxywarden_plan_age_seconds", { collector, age: "worst" }, finiteOr(age.worstMs) / SECOND_MS);
    for (const limit of PLAN_BOUNDS) {
      const value = planned[collector] === null ? Number.NaN : Number(boundBy === limit);
      metrics.set("proxywarden_plan_bound", { collector, limit }, value);
    }
  }
}

/** If no calls are left there is no expected age: NaN leaves the gauge out. */
const finiteOr = (value: number): number => (Number.isFinite(value) ? value : Number.NaN);

/** NaN leaves a gauge out. */
const NOT_COLLECTED = {
  requestedMs: Number.NaN,
  pacedMs: Number.NaN,
  freshMs: Number.NaN,
  callsPerMinute: Number.NaN,
  boundBy: null,
  age: { medianMs: Number.NaN, worstMs: Number.NaN },
};
