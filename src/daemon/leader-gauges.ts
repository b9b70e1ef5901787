import type { RateLimiter } from "../api-client/rate-limiter.ts";
import { SECOND_MS } from "../base/duration.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { Category } from "../rate-limit/limits.ts";
import type { StatusSnapshot } from "../web/api/status-views.ts";

/** Sets the gauges of a leader that are computed at each scrape. */
export function setLeaderGauges(
  metrics: Pick<DaemonMetrics, "set">,
  { ledger, month, clockSkewMs }: Pick<StatusSnapshot, "ledger" | "month" | "clockSkewMs">,
  rateLimiter: Pick<RateLimiter, "learnedLimits">,
): void {
  const { plan } = ledger.limits;
  metrics.set("proxywarden_month_calls", {}, ledger.monthUsed);
  metrics.set("proxywarden_month_calls_limit", {}, plan.callsPerMonth ?? Number.NaN);
  metrics.set("proxywarden_month_reset_timestamp_seconds", {}, month.endMs / SECOND_MS);
  metrics.set("proxywarden_ratelimit_limit", { category: "plan" }, plan.requestsPerMinute ?? Number.NaN);
  const learned = Object.entries(rateLimiter.learnedLimits()) as [Category, number | null][];
  for (const [category, limit] of learned) {
    metrics.set("proxywarden_ratelimit_learned_limit", { category }, limit ?? Number.NaN);
  }
  metrics.set("proxywarden_service_clock_skew_seconds", {}, (clockSkewMs ?? Number.NaN) / SECOND_MS);
}
