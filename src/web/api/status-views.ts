import type { CollectorHealth } from "../../collectors/collector-health.ts";
import { NODE_STATUSES, type NodeStatus } from "../../model/node.ts";
import { SESSION_STATUSES, SESSION_TYPES } from "../../model/session.ts";
import { COLLECTORS, type Collector, type Fleet, type Snapshot } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import type { Ledger } from "../../rate-limit/account.ts";
import { availabilityOf } from "../../rate-limit/availability.ts";
import type { BillingMonth } from "../../rate-limit/billing-month.ts";
import { expectedCallsOfPlan } from "../../rate-limit/external-usage/external-usage.ts";
import { callsInFlight, remainingAtLeast } from "../../rate-limit/limit-headers.ts";
import { CATEGORIES } from "../../rate-limit/limits.ts";
import type { Plan } from "../../scheduling/planner.ts";
import { cacheByColumn } from "./column-cache.ts";
import { isKnown, iso, isoAt, seconds, secondsOf } from "./notation.ts";
import type { NodesQuery } from "./query.ts";

/** The state of the daemon that the JSON routes show. */
export interface StatusSnapshot {
  readonly version: string;
  readonly startedAt: EpochMs;
  readonly now: EpochMs;
  readonly monotonic: MonotonicMs;
  /** Null before the first snapshot. */
  readonly snapshot: Snapshot | null;
  readonly plan: Plan;
  readonly collectors: Readonly<Record<Collector, CollectorHealth>>;
  readonly ledger: Ledger;
  readonly month: BillingMonth;
  readonly clockSkewMs: number | null;
}

/** `GET /api/v1/status`. */
export function statusView(statusSnapshot: StatusSnapshot) {
  const { snapshot } = statusSnapshot;
  return {
    version: statusSnapshot.version,
    started_at: isoAt(statusSnapshot.startedAt),
    now: isoAt(statusSnapshot.now),
    service_clock_skew_seconds: seconds(statusSnapshot.clockSkewMs),
    nodes: snapshot === null ? null : { total: snapshot.fleet.count, ...statusCounts(snapshot.fleet) },
    usage_known: snapshot?.fleet.usageKnown ?? false,
    sessions: snapshot === null ? null : sessionCounts(snapshot),
    collectors: byName(COLLECTORS, (collector) => collectorView(statusSnapshot, collector)),
  };
}

/** Returns a summary of one line. */
export function statusLine({ snapshot, collectors }: StatusSnapshot): string {
  const failing = COLLECTORS.filter((collector) => collectors[collector].failure !== null);
  const trouble =
    failing.length === 0
      ? ""
      : `; failing: ${failing.map((each) => `${each} (${collectors[each].failure!.kind})`).join(", ")}`;
  if (snapshot === null || snapshot.fleet.walkedAt === null) return `the fleet is not known yet${trouble}`;
  const counts = Object.entries(statusCounts(snapshot.fleet)).filter(([, count]) => count > 0);
  return `${snapshot.fleet.count} nodes: ${counts.map(([status, count]) => `${count} ${status}`).join(", ")}${trouble}`;
}

/** `GET /api/v1/nodes`: a page of the fleet, in the order of ids. */
export function nodesView(statusSnapshot: StatusSnapshot, query: NodesQuery) {
  const fleet = statusSnapshot.snapshot?.fleet;
  const slots = fleet === undefined ? [] : matchingSlots(fleet, query);
  const begin = (query.page - 1) * query.limit;
  return {
    data: slots.slice(begin, begin + query.limit).map((slot) => listView(statusSnapshot, fleet!, slot)),
    pagination: { page: query.page, limit: query.limit, total: slots.length },
  };
}

/** `GET /api/v1/nodes/ID`; null: no such node. */
export function nodeView(statusSnapshot: StatusSnapshot, id: string) {
  const fleet = statusSnapshot.snapshot?.fleet;
  const slot = id === "" ? -1 : (fleet?.ids.indexOf(id) ?? -1);
  if (fleet === undefined || slot < 0) return null;
  return {
    ...listView(statusSnapshot, fleet, slot),
    cpu_usage_ratio: numberOrNull(fleet.cpuUsage[slot]),
    memory_usage_ratio: numberOrNull(fleet.memoryUsage[slot]),
    disk_usage_ratio: numberOrNull(fleet.diskUsage[slot]),
    created_at: iso(fleet.createdAtMs[slot]),
    updated_at: iso(fleet.updatedAtMs[slot]),
    detail_age_seconds: ageSeconds(statusSnapshot, fleet.detailedAt[slot]),
    sessions: nodeSessions(statusSnapshot, id),
  };
}

/** `GET /api/v1/budget`. */
export function budgetView(statusSnapshot: StatusSnapshot) {
  const { ledger, month, monotonic } = statusSnapshot;
  const { plan } = ledger.limits;
  return {
    reserve: ledger.limits.reserve,
    in_flight: ledger.inFlight,
    categories: byName(CATEGORIES, (category) => categoryView(ledger, category, monotonic)),
    plan: {
      requests_per_minute: plan.requestsPerMinute,
      concurrent_requests: plan.concurrentRequests,
      others: {
        calls: ledger.externalUsage.plan.provenCalls(),
        expected_per_minute: Math.ceil(expectedCallsOfPlan(ledger.externalUsage, ledger.limits, monotonic)),
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

function categoryView(ledger: Ledger, category: (typeof CATEGORIES)[number], now: MonotonicMs) {
  const { headers: view, rejections } = ledger.accounts[category];
  const { lastStatement: stated } = view;
  const { requests, burst, windowMs } = ledger.limits.categories[category];
  const { at, waitReason } = availabilityOf(ledger, category, "detail", now);
  return {
    configured: { requests, burst, window_seconds: secondsOf(windowMs) },
    stated: stated && { limit: stated.limit, remaining: stated.remaining, age_seconds: secondsOf(now - stated.at) },
    remaining_at_least: remainingAtLeast(view),
    calls: view.sent,
    in_flight: callsInFlight(view),
    consecutive_refusals: rejections,
    others: {
      calls: ledger.externalUsage[category].provenCalls(),
      expected_per_window: ledger.externalUsage[category].expectedCalls(now),
    },
    next_poll: {
      in_seconds: Number.isFinite(at) ? secondsOf(Math.max(0, at - now)) : null,
      held_by: waitReason,
    },
  };
}

function collectorView({ plan, collectors, monotonic, snapshot }: StatusSnapshot, collector: Collector) {
  const planned = plan[collector];
  const { lastSuccessAt, lastDurationMs, complete, failure } = collectors[collector];
  return {
    planned: planned && {
      wish_seconds: secondsOf(planned.requestedMs),
      interval_seconds: secondsOf(planned.pacedMs),
      fresh_seconds: secondsOf(planned.freshMs),
      stretch: Number((planned.pacedMs / planned.requestedMs).toFixed(3)),
      bound_by: planned.boundBy,
      calls_per_minute: Number(planned.callsPerMinute.toFixed(3)),
    },
    last_success_at: iso(lastSuccessAt),
    last_duration_seconds: seconds(lastDurationMs),
    complete,
    age_seconds: snapshot === null ? null : ageSummary(snapshot, collector, monotonic),
    failure: failure && { reason: failure.kind, message: failure.message },
  };
}

/** Returns the median and the greatest age of the data of a collector; null: there is none yet. */
function ageSummary(snapshot: Snapshot, collector: Collector, now: MonotonicMs) {
  const at = {
    nodes: () => snapshot.fleet.listedAt,
    details: () => snapshot.fleet.detailedAt,
    sessions: () => [snapshot.sessions?.settledAt ?? Number.NaN],
    stats: () => [snapshot.stats?.at ?? Number.NaN],
    hourly: () => [snapshot.hourly?.at ?? Number.NaN],
  }[collector]();
  const sorted = sortedTimes(at);
  if (sorted.length === 0) return null;
  return { median: secondsOf(now - sorted[sorted.length >> 1]!), max: secondsOf(now - sorted[0]!) };
}

/** Known times, earliest first. */
const sortedTimes = cacheByColumn((column: Float64Array | readonly number[]) =>
  Float64Array.from(column)
    .filter((at) => !Number.isNaN(at))
    .sort(),
);

/** Slots of nodes in the order of their ids. */
const slotsInOrder = cacheByColumn((ids: readonly string[]) =>
  [...ids.keys()].filter((slot) => ids[slot] !== "").sort((a, b) => (ids[a]! < ids[b]! ? -1 : 1)),
);

function matchingSlots(fleet: Fleet, query: NodesQuery): number[] {
  const q = query.q?.toLowerCase() ?? null;
  const status = query.status === null ? null : NODE_STATUSES.indexOf(query.status);
  const slots: number[] = [];
  for (const slot of slotsInOrder(fleet.ids)) {
    if (status !== null && fleet.status[slot] !== status) continue;
    const place = fleet.locations[fleet.locationIndex[slot]!];
    if (query.country !== null && place?.country !== query.country) continue;
    if (query.region !== null && place?.region !== query.region) continue;
    const texts = [fleet.ids[slot]!, fleet.name[slot]!, fleet.ipAddress[slot]!];
    if (q === null || texts.some((text) => text.toLowerCase().includes(q))) slots.push(slot);
  }
  return slots;
}

function listView(statusSnapshot: StatusSnapshot, fleet: Fleet, slot: number) {
  const place = fleet.locations[fleet.locationIndex[slot]!];
  return {
    id: fleet.ids[slot],
    name: textOrNull(fleet.name[slot]),
    status: NODE_STATUSES[fleet.status[slot]!],
    country: textOrNull(place?.country),
    region: textOrNull(place?.region),
    ip_address: textOrNull(fleet.ipAddress[slot]),
    version: textOrNull(fleet.version[slot]),
    last_seen: iso(fleet.lastSeenMs[slot]),
    uptime_hours: numberOrNull(fleet.uptimeHours[slot]),
    active_sessions: numberOrNull(fleet.activeSessions[slot]),
    bandwidth_gb: numberOrNull(fleet.bandwidthGb[slot]),
    age_seconds: ageSeconds(statusSnapshot, fleet.listedAt[slot]),
  };
}

function nodeSessions({ snapshot }: StatusSnapshot, id: string): Record<string, number> | null {
  const nodes = snapshot?.sessions?.nodes;
  const slot = nodes?.ids.indexOf(id) ?? -1;
  if (nodes === undefined || slot < 0) return null;
  return byName(SESSION_STATUSES, (_, index) => nodes.counts[index]![slot]!);
}

function statusCounts(fleet: Fleet): Record<NodeStatus, number> {
  const counts = new Array<number>(NODE_STATUSES.length).fill(0);
  for (let slot = 0; slot < fleet.slots; slot++) if (fleet.ids[slot] !== "") counts[fleet.status[slot]!]!++;
  return byName(NODE_STATUSES, (_, index) => counts[index]!);
}

function sessionCounts({ sessions }: Snapshot): Record<string, number> | null {
  if (sessions === null) return null;
  const ofStatus = (status: number) =>
    SESSION_TYPES.reduce((sum, _, type) => sum + sessions.counts[status * SESSION_TYPES.length + type]!, 0);
  const counts = SESSION_STATUSES.map((_, status) => ofStatus(status));
  return {
    total: counts.reduce((sum, count) => sum + count, 0),
    ...byName(SESSION_STATUSES, (_, index) => counts[index]!),
  };
}

function byName<Name extends string, T>(names: readonly Name[], value: (name: Name, index: number) => T) {
  return Object.fromEntries(names.map((name, index) => [name, value(name, index)])) as Record<Name, T>;
}

const numberOrNull = (value: number | undefined): number | null => (isKnown(value) ? value : null);
const textOrNull = (value: string | undefined): string | null => value || null;
const ageSeconds = ({ monotonic }: StatusSnapshot, at: MonotonicMs | undefined): number | null =>
  isKnown(at) ? seconds(monotonic - at) : null;
