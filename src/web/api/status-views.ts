import { byName } from "../../base/by-name.ts";
import { NumberColumn } from "../../base/number-column.ts";
import type { Steps } from "../../base/steps.ts";
import type { CollectorHealth } from "../../collectors/collector-health.ts";
import { NODE_STATUSES, type NodeStatus } from "../../model/node.ts";
import { SESSION_STATUSES, SESSION_TYPES, type SessionStatus } from "../../model/session.ts";
import { COLLECTORS, type Collector, type Fleet, type SessionSummary, type Snapshot } from "../../model/snapshot.ts";
import { type EpochMs, isoAt, type MonotonicMs } from "../../model/time.ts";
import { occupiedSlots } from "../../policy/cel/field-readers.ts";
import { availabilityOf } from "../../rate-limit/availability.ts";
import { expectedCallsOfPlan } from "../../rate-limit/external-usage/external-usage.ts";
import type { Ledger } from "../../rate-limit/ledger.ts";
import { CATEGORIES } from "../../rate-limit/limits.ts";
import type { BillingMonth } from "../../rate-limit/monthly-budget.ts";
import type { Plan } from "../../scheduling/planner.ts";
import { countNoun, formatCount } from "../ui/page/format.ts";
import { summarizeInSteps, summarizeTimes } from "./fleet-columns.ts";
import { iso, seconds, secondsOf } from "./json-values.ts";

/** The state of the daemon that the JSON routes show. */
export interface StatusSnapshot {
  readonly version: string;
  readonly startedAt: EpochMs;
  readonly now: EpochMs;
  readonly monotonic: MonotonicMs;
  /** Null before the first snapshot, and on a standby. */
  readonly snapshot: Snapshot | null;
  readonly plan: Plan;
  readonly collectors: Readonly<Record<Collector, CollectorHealth>>;
  readonly ledger: Ledger;
  readonly month: BillingMonth;
  /** How far the service's clock is ahead of the daemon's, or null if unknown. */
  readonly clockSkewMs: number | null;
  /** Time of the last reload if it was rejected, otherwise null. */
  readonly configRejectedAt: EpochMs | null;
}

/** The section `leader` of `GET /api/v1/status`, or null if this daemon shares its state with no other. */
export type LeaderView = {
  /** Whether this daemon leads now. */
  readonly is_this: boolean;
  /** Name of the leader, or of the last one, or null if unknown. */
  readonly name: string | null;
  /** Public URL of that daemon, or null if unknown. */
  readonly url: string | null;
} | null;

/** The section `links` of `GET /api/v1/status`. A link is null if it is not configured. */
export type LinksView = Readonly<Record<"runbook" | "grafana", string | null>>;

/** `GET /api/v1/status`, without `leader`, `links`, `accepts_commands` and `remediation`. */
export function statusView(statusSnapshot: StatusSnapshot) {
  const { version, startedAt, now, clockSkewMs, configRejectedAt, snapshot } = statusSnapshot;
  const sessions = snapshot?.sessions ? sessionsByStatus(snapshot.sessions) : null;
  return {
    version,
    started_at: isoAt(startedAt),
    now: isoAt(now),
    config_rejected_at: iso(configRejectedAt),
    service_clock_skew_seconds: seconds(clockSkewMs),
    nodes: snapshot && isRead(snapshot.fleet) ? { total: snapshot.fleet.count, ...statusCounts(snapshot.fleet) } : null,
    nodes_complete: isComplete(statusSnapshot),
    usage_known: snapshot?.fleet.usageKnown ?? false,
    sessions: sessions && { total: Object.values(sessions).reduce((sum, count) => sum + count, 0), ...sessions },
    collectors: byName(COLLECTORS, (collector) => collectorView(statusSnapshot, collector)),
  };
}

/** Returns whether a walk of the node list has completed. Before that, the fleet has only the nodes that were read so far. */
export const isComplete = ({ snapshot }: StatusSnapshot): boolean =>
  snapshot !== null && snapshot.fleet.settledAt !== null;

/** Returns whether the list has shown nodes, or a walk has shown that there are none. */
const isRead = ({ count, walkedAt }: Fleet): boolean => count > 0 || walkedAt !== null;

/** Returns the number of nodes by status and the failing collectors, in one line. */
export function statusLine({ snapshot, collectors }: StatusSnapshot): string {
  const failing = COLLECTORS.filter((collector) => collectors[collector].failure !== null);
  const failures = failing.map((collector) => `${collector} (${collectors[collector].failure!.kind})`).join(", ");
  const suffix = failures === "" ? "" : `; failing: ${failures}`;
  if (snapshot === null || snapshot.fleet.walkedAt === null) return `the fleet is not known yet${suffix}`;
  const counts = Object.entries(statusCounts(snapshot.fleet)).filter(([, count]) => count > 0);
  const byStatus = counts.map(([status, count]) => `${formatCount(count)} ${status}`).join(", ");
  return `${countNoun(snapshot.fleet.count, "node")}${byStatus === "" ? "" : `: ${byStatus}`}${suffix}`;
}

/** `GET /api/v1/budget`. */
export function budgetView(statusSnapshot: StatusSnapshot) {
  const { ledger, month, monotonic } = statusSnapshot;
  const { plan } = ledger.limits;
  // A standby polls nothing.
  const isPolling = COLLECTORS.some((collector) => statusSnapshot.plan[collector] !== null);
  return {
    reserve: ledger.limits.reserve,
    in_flight: ledger.inFlight,
    categories: byName(CATEGORIES, (category) => categoryView(ledger, category, monotonic, isPolling)),
    plan: {
      requests_per_minute: plan.requestsPerMinute,
      concurrent_requests: plan.concurrentRequests,
      external_usage: {
        calls: ledger.externalUsage.plan.provenCalls(),
        expected_per_minute: Math.ceil(expectedCallsOfPlan(ledger, monotonic)),
      },
    },
    month: {
      started_at: isoAt(month.startMs),
      ends_at: isoAt(month.endMs),
      calls: ledger.monthUsed,
      calls_limit: plan.callsPerMonth,
    },
  };
}

function categoryView(ledger: Ledger, category: (typeof CATEGORIES)[number], now: MonotonicMs, isPolling: boolean) {
  const { stated, rejections } = ledger.categories[category];
  const usage = ledger.externalUsage[category];
  const last = stated.lastStatement;
  const { requests, burst, windowMs } = ledger.limits.categories[category];
  const { at, waitReason } = availabilityOf(ledger, category, "detail", now);
  return {
    configured: { requests, burst, window_seconds: secondsOf(windowMs) },
    stated: last && { limit: last.limit, remaining: last.remaining, age_seconds: secondsOf(now - last.at) },
    remaining_at_least: stated.remainingAtLeast(),
    calls: usage.own.sent.count(),
    in_flight: usage.own.inFlight(),
    consecutive_refusals: rejections,
    external_usage: {
      calls: usage.provenCalls(),
      expected_per_window: usage.expectedCalls(now),
    },
    next_poll: {
      in_seconds: isPolling && Number.isFinite(at) ? secondsOf(Math.max(0, at - now)) : null,
      held_by: isPolling ? waitReason : null,
    },
  };
}

function collectorView({ plan, collectors, monotonic, snapshot }: StatusSnapshot, collector: Collector) {
  const planned = plan[collector];
  const { lastSuccessAt, lastDurationMs, complete, failure } = collectors[collector];
  const ages = snapshot === null ? null : ageSummary(snapshot, collector, monotonic);
  return {
    planned: planned && {
      requested_interval_seconds: secondsOf(planned.requestedMs),
      interval_seconds: secondsOf(planned.pacedMs),
      fresh_seconds: secondsOf(planned.freshMs),
      slowdown: Number((planned.pacedMs / planned.requestedMs).toFixed(3)),
      bound_by: planned.boundBy,
      calls_per_minute: Number(planned.callsPerMinute.toFixed(3)),
    },
    last_success_at: iso(lastSuccessAt),
    last_duration_seconds: seconds(lastDurationMs),
    complete,
    age_seconds: ages?.summary ?? null,
    nodes_read: collector === "details" ? (ages?.count ?? null) : null,
    failure: failure && { reason: failure.kind, message: failure.message },
  };
}

/** The steps that compute the ages of a large fleet, so that {@link statusView} takes less time. */
export function* summarizeAges({ snapshot }: StatusSnapshot): Steps<void> {
  if (snapshot === null) return;
  yield* summarizeInSteps(snapshot.fleet.listedAt);
  yield* summarizeInSteps(snapshot.fleet.detailedAt);
}

/** Returns the number of records of a collector, with their median and maximum age or null if there are none. */
function ageSummary(snapshot: Snapshot, collector: Collector, now: MonotonicMs) {
  const at = {
    nodes: () => snapshot.fleet.listedAt,
    details: () => snapshot.fleet.detailedAt,
    sessions: () => NumberColumn.from([snapshot.sessions?.settledAt ?? Number.NaN]),
    stats: () => NumberColumn.from([snapshot.stats?.at ?? Number.NaN]),
    hourly: () => NumberColumn.from([snapshot.hourly?.at ?? Number.NaN]),
  }[collector]();
  const { count, earliest, median } = summarizeTimes(at);
  if (count === 0) return { count, summary: null };
  return { count, summary: { median: secondsOf(now - median), max: secondsOf(now - earliest) } };
}

/** Returns the number of nodes in each status. */
export function statusCounts({ slots, ids, status }: Fleet): Record<NodeStatus, number> {
  const counts = new Array<number>(NODE_STATUSES.length).fill(0);
  const occupied = occupiedSlots(ids);
  for (let slot = 0; slot < slots; slot++) if (occupied[slot] === 1) counts[status[slot]!]!++;
  return byName(NODE_STATUSES, (_, index) => counts[index]!);
}

/** Returns the number of sessions in each status. */
export const sessionsByStatus = ({ counts }: SessionSummary): Record<SessionStatus, number> =>
  byName(SESSION_STATUSES, (_, status) => {
    const first = status * SESSION_TYPES.length;
    return counts.subarray(first, first + SESSION_TYPES.length).reduce((sum, count) => sum + count, 0);
  });
