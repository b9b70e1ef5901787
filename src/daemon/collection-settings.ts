import { CATEGORIES, type Limits, PLANS } from "../rate-limit/limits.ts";
import type { Config } from "../config/schema/config.ts";
import type { Cadence } from "../collectors/schedule.ts";
import type { WatchSettings } from "../collectors/collector-manager.ts";
import type { Collector } from "../model/snapshot.ts";

/** The limits that a configuration states. */
export function limitsOf({ limits }: Config): Limits {
  const { plan } = limits;
  return {
    categories: Object.fromEntries(
      CATEGORIES.map((category) => {
        const { requests, burst, window } = limits[category];
        return [category, { requests, burst, windowMs: window }];
      }),
    ) as Limits["categories"],
    plan:
      typeof plan === "string"
        ? PLANS[plan]
        : {
            requestsPerMinute: plan.requests_per_minute,
            concurrentRequests: plan.concurrent_requests,
            callsPerMonth: plan.calls_per_month,
          },
    reserve: limits.reserve,
  };
}

/**
 * What the collectors are to do, by a configuration. `shown`: those whose data any exported family shows; `reads`: those
 * whose data the policies read.
 */
export function watchSettingsOf(
  config: Config,
  shown: ReadonlySet<Collector>,
  reads: ReadonlySet<Collector>,
): WatchSettings {
  const { collect } = config;
  const needed = new Set([...shown, ...reads]);
  const cadenceOf = (schedule: Config["collect"]["nodes"]): Cadence =>
    "every" in schedule ? { kind: "every", intervalMs: schedule.every } : { kind: "cron", expression: schedule.cron };
  const cadences = {
    nodes: cadenceOf(collect.nodes),
    details: { kind: "every", intervalMs: collect.details.max_age } as const,
    sessions: cadenceOf(collect.sessions),
    stats: cadenceOf(collect.stats),
    hourly: cadenceOf(collect.hourly),
  };
  const only = (collector: Collector) => (needed.has(collector) ? cadences[collector] : null);
  return {
    // Details are read of the nodes that the list shows, and the bytes of a node are counted for as long as it shows it.
    cadences: {
      nodes: needed.has("details") || needed.has("sessions") ? cadences.nodes : only("nodes"),
      details: only("details"),
      sessions: only("sessions"),
      stats: only("stats"),
      hourly: only("hourly"),
    },
    limits: limitsOf(config),
    monthStartsOn: config.limits.month.starts_on,
    pageLimit: config.service.page_limit,
    usageScale: config.service.usage_scale ?? null,
    maxMissing: config.safety.trust.max_missing,
    reads,
  };
}
