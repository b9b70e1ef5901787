import { DAY_MS, type DurationMs, formatDuration, SECOND_MS } from "../../base/duration.ts";
import { requestedIntervalsOf } from "../../collectors/schedule.ts";
import { type ConfigProblem, type KeyPositions, locateProblem } from "../../config/diagnostics/problem.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { PolicySpec } from "../../config/schema/policy.ts";
import { collectionSettingsOf } from "../../daemon/config-resources.ts";
import { COLLECTORS, type Collector } from "../../model/snapshot.ts";
import { systemClock } from "../../platform/clock.ts";
import type { Field } from "../../policy/cel/fields.ts";
import { expressionsOf } from "../../policy/policy.ts";
import type { MonthUsage } from "../../rate-limit/monthly-budget.ts";
import { type CollectorPlan, type Plan, planPolling } from "../../scheduling/planner.ts";
import type { PlanInput } from "../../scheduling/polling-capacity.ts";
import { BOUND_TEXTS, skippedText } from "../output/plan-table.ts";
import { formatLength } from "../output/text.ts";

/** A month of 30 days in which no call was made yet. */
const FULL_MONTH: MonthUsage = { callsUsed: 0, leftMs: 30 * DAY_MS };

/** Number of nodes, and of pages of each list. Zero if unknown. */
type PlannedSize = Pick<PlanInput, "nodes" | "nodePages" | "sessionPages">;

const UNKNOWN_SIZE: PlannedSize = { nodes: 0, nodePages: 0, sessionPages: 0 };

/** Key with the requested interval of each source of fields. */
const INTERVAL_KEYS: Readonly<Record<Field["source"], string>> = {
  nodes: "collect.nodes",
  details: "collect.details.max_age",
  sessions: "collect.sessions",
};

/** Plans the polling of a network of this size, for a full month by default. */
export function planNetwork(
  { config, policies }: Pick<LoadedConfig, "config" | "policies">,
  size: PlannedSize,
  month: MonthUsage = FULL_MONTH,
): { readonly input: PlanInput; readonly plan: Plan } {
  const { schedules, limits, reads } = collectionSettingsOf(config, policies);
  const requestedIntervals = requestedIntervalsOf(schedules, { clock: systemClock });
  const input = { ...size, requestedIntervals, limits, reads, month };
  return { input, plan: planPolling(input) };
}

/**
 * Returns warnings about what the plan for a network of this size, in a full month, does not allow: cron schedules with
 * runs that are skipped, and policies whose `max_age` is shorter than the expected age of the data that they read. Such
 * a policy is unknown most of the time.
 */
export function planWarnings(loaded: LoadedConfig, size = UNKNOWN_SIZE): ConfigProblem[] {
  const { policies, policyKeys, keys: configKeys } = loaded;
  const { input, plan } = planNetwork(loaded, size);
  const ageWarnings = policies.flatMap((spec, index) => {
    const { keys, path } = policyKeys[index]!;
    return fieldsBySource(spec).flatMap(([source, fields]) => {
      const planned = plan[source];
      if (spec.maxAgeMs === null || planned === null || !Number.isFinite(planned.requestedMs)) return [];
      const ageMs = ageOf(source, planned);
      if (ageMs <= spec.maxAgeMs) return [];
      const found = formatDuration(spec.maxAgeMs);
      const message = `is ${found}, but ${reasonOf(source, planned, ageMs)}: ${fields.join(", ")} will usually be too old, and the verdict unknown`;
      return [{ ...locateProblem(keys, { key: `${path}.max_age`, message }), found, expected: expectedText(ageMs) }];
    });
  });
  return [...skippedRunWarnings(plan, input, configKeys), ...ageWarnings];
}

/** Returns whether a plan assumes one call per run because the size of the list is unknown. */
const isSizeUnknown = (collector: Collector, { nodePages, sessionPages }: PlanInput): boolean =>
  (collector === "nodes" && nodePages === 0) || (collector === "sessions" && sessionPages === 0);

function skippedRunWarnings(plan: Plan, input: PlanInput, keys: KeyPositions) {
  return COLLECTORS.flatMap((collector) => {
    const { boundBy = null, slowdown = 1, requestedMs = 0 } = plan[collector] ?? {};
    if (boundBy === null || input.requestedIntervals[collector]?.isCron !== true) return [];
    const more = isSizeUnknown(collector, input) ? ", and more if a run takes more than one call" : "";
    const skipped = Number.isFinite(slowdown) ? `${skippedText(slowdown)} are skipped${more}` : "all runs are skipped";
    const message = `runs every ${formatDuration(requestedMs)}, which ${BOUND_TEXTS[boundBy]} don't allow: ${skipped}`;
    return [locateProblem(keys, { key: `collect.${collector}.cron`, message })];
  });
}

/** Returns the shortest `max_age`, in whole seconds, that causes no warning. */
const expectedText = (ageMs: DurationMs): string =>
  Number.isFinite(ageMs)
    ? `must be at least ${formatDuration(Math.ceil(ageMs / SECOND_MS) * SECOND_MS)}`
    : "must be left out";

/** Returns the names of the fields that a policy reads, by source. */
function fieldsBySource(spec: PolicySpec): (readonly [source: Field["source"], names: readonly string[]])[] {
  const fields = expressionsOf([spec]).flatMap((expression) => expression?.fields ?? []);
  return Object.entries(Object.groupBy(new Set(fields), ({ source }) => source)).map(([source, group]) => [
    source as Field["source"],
    group.map(({ name }) => name),
  ]);
}

/**
 * Returns the age that data reaches before it is read again. For details this is the duration of a round, because the
 * worst case assumes that other nodes are read first.
 */
const ageOf = (source: Field["source"], { intervalMs, age }: CollectorPlan): DurationMs =>
  source === "details" ? intervalMs : age.worstMs;

function reasonOf(source: Field["source"], { requestedMs, intervalMs, boundBy }: CollectorPlan, ageMs: DurationMs) {
  const every = Number.isFinite(intervalMs) ? `every ${formatLength(intervalMs)}` : "not at all";
  const read = `${source} are read ${every}`;
  const slowed = intervalMs > requestedMs && boundBy !== null;
  const limited = slowed ? `, because ${BOUND_TEXTS[boundBy]} allow no more` : ` (${INTERVAL_KEYS[source]})`;
  const walk = source === "sessions" && ageMs > intervalMs && Number.isFinite(ageMs);
  return `${read}${limited}${walk ? `, and are ${formatLength(ageMs)} old at the end of the next walk` : ""}`;
}
