import { SECOND_MS } from "../base/duration.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import { COLLECTORS } from "../model/snapshot.ts";
import type { Plan } from "../scheduling/planner.ts";
import { PLAN_BOUNDS } from "../scheduling/polling-capacity.ts";

/** Sets the gauges of the plan. NaN leaves out those of a collector that does not run. */
export function setPlanGauges(planned: Plan, metrics: DaemonMetrics): void {
  for (const collector of COLLECTORS) {
    const plan = planned[collector];
    const { requestedMs = Number.NaN, pacedMs = Number.NaN, freshMs = Number.NaN } = plan ?? {};
    metrics.set("proxywarden_plan_interval_seconds", { collector }, pacedMs / SECOND_MS);
    metrics.set("proxywarden_plan_fresh_seconds", { collector }, freshMs / SECOND_MS);
    metrics.set("proxywarden_plan_stretch_ratio", { collector }, pacedMs / requestedMs);
    metrics.set("proxywarden_plan_calls_per_minute", { collector }, plan?.callsPerMinute ?? Number.NaN);
    metrics.set("proxywarden_plan_age_seconds", { collector, age: "median" }, finiteSeconds(plan?.age.medianMs));
    metrics.set("proxywarden_plan_age_seconds", { collector, age: "worst" }, finiteSeconds(plan?.age.worstMs));
    for (const limit of PLAN_BOUNDS) {
      const value = plan === null ? Number.NaN : Number(plan.boundBy === limit);
      metrics.set("proxywarden_plan_bound", { collector, limit }, value);
    }
  }
}

/** Without calls left there is no expected age. */
const finiteSeconds = (ms = Number.NaN): number => (Number.isFinite(ms) ? ms / SECOND_MS : Number.NaN);
