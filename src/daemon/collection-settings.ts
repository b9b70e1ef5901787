import type { CollectionSettings } from "../collectors/collector-manager.ts";
import type { Config } from "../config/schema/config.ts";
import type { Collector } from "../model/snapshot.ts";
import { type Limits, PLANS } from "../rate-limit/limits.ts";

/** The limits of a configuration. */
export const limitsOf = ({ limits }: Config): Limits => ({
  categories: { node_management: limits.node_management, session_monitoring: limits.session_monitoring },
  plan: typeof limits.plan === "string" ? PLANS[limits.plan] : limits.plan,
  reserve: limits.reserve,
});

/**
 * The settings of the collectors. `exported` are the collectors whose data an exported family shows; `reads` are those
 * whose data a policy reads.
 */
export function collectionSettingsOf(
  config: Config,
  exported: ReadonlySet<Collector>,
  reads: ReadonlySet<Collector>,
): CollectionSettings {
  const { nodes, details, sessions, stats, hourly } = config.collect;
  const needs = (collector: Collector) => exported.has(collector) || reads.has(collector);
  return {
    schedules: {
      // Details and session bytes are collected for the nodes on the list.
      nodes: needs("nodes") || needs("details") || needs("sessions") ? nodes : null,
      details: needs("details") ? { kind: "every", intervalMs: details.max_age } : null,
      sessions: needs("sessions") ? sessions : null,
      stats: needs("stats") ? stats : null,
      hourly: needs("hourly") ? hourly : null,
    },
    limits: limitsOf(config),
    monthStartsOn: config.limits.month.starts_on,
    pageLimit: config.service.page_limit,
    usageScale: config.service.usage_scale ?? null,
    maxMissing: config.safety.trust.maxMissing,
    minInventory: config.safety.trust.minInventory,
    reads,
  };
}
