import type { CollectorHealth } from "../../collectors/collector-health.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import { SESSION_STATUSES, SESSION_TYPES } from "../../model/session.ts";
import { COLLECTORS, type Collector, type Fleet, type Snapshot } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { availabilityOf, type WaitReason } from "../../rate-limit/availability.ts";
import type { BillingMonth } from "../../rate-limit/billing-month.ts";
import { expectedCallsOfPlan } from "../../rate-limit/external-usage/external-usage.ts";
import type { Ledger } from "../../rate-limit/ledger.ts";
import { callsInFlight, remainingAtLeast } from "../../rate-limit/limit-headers.ts";
import { CATEGORIES } from "../../rate-limit/limits.ts";
import type { Plan } from "../../scheduling/planner.ts";
import { isKnown, iso, seconds } from "./notation.ts";
import type { NodesQuery } from "./query.ts";

/** Everything that the JSON routes show, at one moment. */
export interface StatusSnapshot {
  readonly version: string;
  readonly startedAt: EpochMs;
  readonly now: EpochMs;
  readonly monotonic: MonotonicMs;
  /** Null before the first. */
  readonly snapshot: Snapshot | null;
  readonly plan: Plan;
  readonly collectors: Readonly<Record<Collector, CollectorHealth>>;
  readonly ledger: Ledger;
  readonly month: BillingMonth;
  readonly clockSkewMs: number | null;
}

/** `GET /api/v1/status`. */
export function statusView(statusSnapshot: StatusSnapshot): object {
  const { snapshot } = statusSnapshot;
  return {
    version: statusSnapshot.version,
    started_at: iso(statusSnapshot.startedAt),
    now: iso(statusSnapshot.now),
    service_clock_skew_seconds: seconds(statusSnapshot.clockSkewMs),
    nodes: snapshot === null ? null : { total: snapshot.fleet.count, ...statusCounts(snapshot.fleet) },
    usage_known: snapshot?.fleet.usageKnown ?? false,
    sessions: snapshot === null ? null : sessionCounts(snapshot),
    collectors: Object.fromEntries(
      COLLECTORS.map((collector) => [collector, collectorView(statusSnapshot, collector)]),
    ),
  };
}

/** One line on how things stand. */
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
export function nodesView(statusSnapshot: StatusSnapshot, query: NodesQuery): object {
  const fleet = statusSnapshot.snapshot?.fleet;
  const slots = fleet === undefined ? [] : matchingSlots(fleet, query);
  const begin = (query.page - 1) * query.limit;
  return {
    data: slots.slice(begin, begin + query.limit).map((slot) => listView(statusSnapshot, fleet!, slot)),
    pagination: { page: query.page, limit: query.limit, total: slots.length },
  };
}

/** `GET /api/v1/nodes/ID`; null: no such node. */
export function nodeView(statusSnapshot: StatusSnapshot, id: string): object | null {
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
export function budgetView(statusSnapshot: StatusSnapshot): object {
  const { ledger, month, monotonic } = statusSnapshot;
  const { plan } = ledger.limits;
  return {
    reserve: ledger.limits.reserve,
    in_flight: ledger.inFlight,
    categories: Object.fromEntries(CATEGORIES.map((category) => [category, categoryView(ledger, category, monotonic)])),
    plan: {
      requests_per_minute: plan.requestsPerMinute,
      concurrent_requests: plan.concurrentRequests,
      others: {
        calls: ledger.externalUsage.plan.provenCalls(),
        expected_per_minute: Math.ceil(expectedCallsOfPlan(ledger.externalUsage, ledger.limits, monotonic)),
      },
    },
    month: {
      started_at: iso(month.startMs),
      ends_at: iso(month.endMs),
      calls: ledger.monthUsed,
      calls_limit: plan.callsPerMonth,
    },
  };
}

function categoryView(ledger: Ledger, category: (typeof CATEGORIES)[number], now: MonotonicMs): object {
  const { headers: view, rejections: refusals } = ledger.accounts[category];
  const { at, waitReason: hold } = availabilityOf(ledger, category, "detail", now);
  return {
    configured: {
      requests: ledger.limits.categories[category].requests,
      burst: ledger.limits.categories[category].burst,
      window_seconds: seconds(ledger.limits.categories[category].windowMs),
    },
    stated:
      view.lastStatement === null
        ? null
        : {
            limit: view.lastStatement.limit,
            remaining: view.lastStatement.remaining,
            age_seconds: seconds(now - view.lastStatement.at),
          },
    remaining_at_least: remainingAtLeast(view),
    calls: view.sent,
    in_flight: callsInFlight(view),
    consecutive_refusals: refusals,
    others: {
      calls: ledger.externalUsage[category].provenCalls(),
      expected_per_window: ledger.externalUsage[category].expectedCalls(now),
    },
    next_poll: {
      in_seconds: Number.isFinite(at) ? seconds(Math.max(0, at - now)) : null,
      held_by: hold satisfies WaitReason | null,
    },
  };
}

function collectorView({ plan, collectors, monotonic, snapshot }: StatusSnapshot, collector: Collector): object {
  const planned = plan[collector];
  const { lastSuccessAt, lastDurationMs, complete, failure } = collectors[collector];
  return {
    planned:
      planned === null
        ? null
        : {
            wish_seconds: seconds(planned.requestedMs),
            interval_seconds: seconds(planned.pacedMs),
            fresh_seconds: seconds(planned.freshMs),
            stretch: Number((planned.pacedMs / planned.requestedMs).toFixed(3)),
            bound_by: planned.boundBy,
            calls_per_minute: Number(planned.callsPerMinute.toFixed(3)),
          },
    last_success_at: iso(lastSuccessAt),
    last_duration_seconds: seconds(lastDurationMs),
    complete,
    age_seconds: snapshot === null ? null : ageSummary(snapshot, collector, monotonic),
    failure: failure === null ? null : { reason: failure.kind, message: failure.message },
  };
}

/** Median and greatest age of what a collector brought; null: nothing yet. */
function ageSummary(snapshot: Snapshot, collector: Collector, now: MonotonicMs): object | null {
  const at = {
    nodes: () => snapshot.fleet.listedAt,
    details: () => snapshot.fleet.detailedAt,
    sessions: () => [snapshot.sessions?.settledAt ?? Number.NaN],
    stats: () => [snapshot.stats?.at ?? Number.NaN],
    hourly: () => [snapshot.hourly?.at ?? Number.NaN],
  }[collector]();
  const sorted = sortedTimes(at);
  if (sorted.length === 0) return null;
  return { median: seconds(now - sorted[sorted.length >> 1]!), max: seconds(now - sorted[0]!) };
}

// Columns are shared from one fleet to the next for as long as they don't change: so is what is made of them here.
const timesByColumn = new WeakMap<object, Float64Array>();
const orderByIds = new WeakMap<object, readonly number[]>();

/** The moments that are known, earliest first. */
function sortedTimes(column: Float64Array | readonly number[]): Float64Array {
  const known = timesByColumn.get(column);
  if (known !== undefined) return known;
  const sorted = Float64Array.from(column)
    .filter((at) => !Number.isNaN(at))
    .sort();
  timesByColumn.set(column, sorted);
  return sorted;
}

/** The slots that hold a node, in the order of ids. */
function orderOf({ ids }: Fleet): readonly number[] {
  const known = orderByIds.get(ids);
  if (known !== undefined) return known;
  const slots = [...ids.keys()].filter((slot) => ids[slot] !== "");
  const order = slots.sort((a, b) => (ids[a]! < ids[b]! ? -1 : 1));
  orderByIds.set(ids, order);
  return order;
}

function matchingSlots(fleet: Fleet, query: NodesQuery): number[] {
  const q = query.q?.toLowerCase() ?? null;
  const status = query.status === null ? null : NODE_STATUSES.indexOf(query.status);
  const slots: number[] = [];
  for (const slot of orderOf(fleet)) {
    if (status !== null && fleet.status[slot] !== status) continue;
    const place = fleet.locations[fleet.locationIndex[slot]!];
    if (query.country !== null && place?.country !== query.country) continue;
    if (query.region !== null && place?.region !== query.region) continue;
    const texts = [fleet.ids[slot]!, fleet.names[slot]!, fleet.ipAddresses[slot]!];
    if (q === null || texts.some((text) => text.toLowerCase().includes(q))) slots.push(slot);
  }
  return slots;
}

function listView(statusSnapshot: StatusSnapshot, fleet: Fleet, slot: number): object {
  const place = fleet.locations[fleet.locationIndex[slot]!];
  return {
    id: fleet.ids[slot],
    name: textOrNull(fleet.names[slot]),
    status: NODE_STATUSES[fleet.status[slot]!],
    country: textOrNull(place?.country),
    region: textOrNull(place?.region),
    ip_address: textOrNull(fleet.ipAddresses[slot]),
    version: textOrNull(fleet.versions[slot]),
    last_seen: iso(fleet.lastSeenMs[slot]),
    uptime_hours: numberOrNull(fleet.uptimeHours[slot]),
    active_sessions: numberOrNull(fleet.activeSessions[slot]),
    bandwidth_gb: numberOrNull(fleet.bandwidthGb[slot]),
    age_seconds: ageSeconds(statusSnapshot, fleet.listedAt[slot]),
  };
}

function nodeSessions({ snapshot }: StatusSnapshot, id: string): object | null {
  const nodes = snapshot?.sessions?.nodes;
  const slot = nodes?.ids.indexOf(id) ?? -1;
  if (nodes === undefined || slot < 0) return null;
  return Object.fromEntries(SESSION_STATUSES.map((status, index) => [status, nodes.counts[index]![slot]]));
}

const statusCounts = (fleet: Fleet): Record<string, number> => {
  const counts = new Array<number>(NODE_STATUSES.length).fill(0);
  for (let slot = 0; slot < fleet.slots; slot++) if (fleet.ids[slot] !== "") counts[fleet.status[slot]!]!++;
  return Object.fromEntries(NODE_STATUSES.map((status, index) => [status, counts[index]!]));
};

function sessionCounts({ sessions }: Snapshot): object | null {
  if (sessions === null) return null;
  const ofStatus = (status: number) =>
    SESSION_TYPES.reduce((sum, _, type) => sum + sessions.counts[status * SESSION_TYPES.length + type]!, 0);
  const counts = SESSION_STATUSES.map((_, status) => ofStatus(status));
  return {
    total: counts.reduce((sum, count) => sum + count, 0),
    ...Object.fromEntries(SESSION_STATUSES.map((status, index) => [status, counts[index]])),
  };
}

const numberOrNull = (value: number | undefined): number | null => (isKnown(value) ? value : null);
const textOrNull = (value: string | undefined): string | null => value || null;
const ageSeconds = ({ monotonic }: StatusSnapshot, at: MonotonicMs | undefined): number | null =>
  isKnown(at) ? seconds(monotonic - at) : null;
