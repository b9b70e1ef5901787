import type { CollectionSettings } from "../collectors/collector-manager.ts";
import type { Schedule } from "../collectors/schedule.ts";
import type { Config } from "../config/schema/config.ts";
import type { Collector } from "../model/snapshot.ts";
import { CATEGORIES, type Limits, PLANS } from "../rate-limit/limits.ts";

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
export function collectionSettingsOf(
  config: Config,
  shown: ReadonlySet<Collector>,
  reads: ReadonlySet<Collector>,
): CollectionSettings {
  const { collect } = config;
  const needed = new Set([...shown, ...reads]);
  const scheduleOf = (schedule: Config["collect"]["nodes"]): Schedule =>
    "every" in schedule ? { kind: "every", intervalMs: schedule.every } : { kind: "cron", expression: schedule.cron };
  const schedules = {
    nodes: scheduleOf(collect.nodes),
    details: { kind: "every", intervalMs: collect.details.max_age } as const,
    sessions: scheduleOf(collect.sessions),
    stats: scheduleOf(collect.stats),
    hourly: scheduleOf(collect.hourly),
  };
  const only = (collector: Collector) => (needed.has(collector) ? schedules[collector] : null);
  return {
    // Details are read of the nodes that the list shows, and the bytes of a node are counted for as long as it shows it.
    schedules: {
      nodes: needed.has("details") || needed.has("sessions") ? schedules.nodes : only("nodes"),
      details: only("details"),
      sessions: only("sessions"),
      stats: only("stats"),
      hourly: only("hourly"),
    },
    limits: limitsOf(config),
    monthStartsOn: config.limits.month.starts_on,
    pageLimit: config.service.page_limit,
    usageScale: config.service.usage_scale ?? null,
    maxMissing: config.safety.trust.maxMissing,
    reads,
  };
}
