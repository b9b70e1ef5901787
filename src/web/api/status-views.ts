import type { Ledger } from "../../rate-limit/ledger.ts";
import { CATEGORIES } from "../../rate-limit/limits.ts";
import type { PlanMonth } from "../../rate-limit/billing-month.ts";
import { type Hold, opening } from "../../rate-limit/availability.ts";
import { expectedOfPlan } from "../../rate-limit/external-usage/external-usage.ts";
import type { Plan } from "../../scheduling/planner.ts";
import { leastRemaining, underWay } from "../../rate-limit/limit-headers.ts";
import type { CollectorState } from "../../collectors/collector-health.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import { SESSION_STATUSES, SESSION_TYPES } from "../../model/session.ts";
import { COLLECTORS, type Collector, type Fleet, type Snapshot } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { isKnown, iso, seconds } from "./notation.ts";
import type { NodesQuery } from "./query.ts";

/** Everything that the JSON routes show, at one moment. */
export interface Scene {
  readonly version: string;
  readonly startedAt: EpochMs;
  readonly now: EpochMs;
  readonly monotonic: MonotonicMs;
  /** Null before the first. */
  readonly snapshot: Snapshot | null;
  readonly plan: Plan;
  readonly collectors: Readonly<Record<Collector, CollectorState>>;
  readonly ledger: Ledger;
  readonly month: PlanMonth;
  readonly clockSkewMs: number | null;
}

/** `GET /api/v1/status`. */
export function statusView(scene: Scene): object {
  const { snapshot } = scene;
  return {
    version: scene.version,
    started_at: iso(scene.startedAt),
    now: iso(scene.now),
    service_clock_skew_seconds: seconds(scene.clockSkewMs),
    nodes: snapshot === null ? null : { total: snapshot.fleet.count, ...statusCounts(snapshot.fleet) },
    usage_known: snapshot?.fleet.usageKnown ?? false,
    sessions: snapshot === null ? null : sessionCounts(snapshot),
    collectors: Object.fromEntries(COLLECTORS.map((collector) => [collector, collectorView(scene, collector)])),
  };
}

/** One line on how things stand. */
export function statusLine({ snapshot, collectors }: Scene): string {
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
export function nodesView(scene: Scene, query: NodesQuery): object {
  const fleet = scene.snapshot?.fleet;
  const slots = fleet === undefined ? [] : matching(fleet, query);
  const begin = (query.page - 1) * query.limit;
  return {
    data: slots.slice(begin, begin + query.limit).map((slot) => listView(scene, fleet!, slot)),
    pagination: { page: query.page, limit: query.limit, total: slots.length },
  };
}

/** `GET /api/v1/nodes/ID`; null: no such node. */
export function nodeView(scene: Scene, id: string): object | null {
  const fleet = scene.snapshot?.fleet;
  const slot = id === "" ? -1 : (fleet?.ids.indexOf(id) ?? -1);
  if (fleet === undefined || slot < 0) return null;
  return {
    ...listView(scene, fleet, slot),
    cpu_usage_ratio: number(fleet.cpuUsage[slot]),
    memory_usage_ratio: number(fleet.memoryUsage[slot]),
    disk_usage_ratio: number(fleet.diskUsage[slot]),
    created_at: iso(fleet.createdAtMs[slot]),
    updated_at: iso(fleet.updatedAtMs[slot]),
    detail_age_seconds: age(scene, fleet.detailedAt[slot]),
    sessions: nodeSessions(scene, id),
  };
}

/** `GET /api/v1/budget`. */
export function budgetView(scene: Scene): object {
  const { ledger, month, monotonic } = scene;
  const { plan } = ledger.limits;
  return {
    reserve: ledger.limits.reserve,
    in_flight: ledger.inFlight,
    categories: Object.fromEntries(CATEGORIES.map((category) => [category, categoryView(ledger, category, monotonic)])),
    plan: {
      requests_per_minute: plan.requestsPerMinute,
      concurrent_requests: plan.concurrentRequests,
      others: {
        calls: ledger.others.plan.total(),
        expected_per_minute: Math.ceil(expectedOfPlan(ledger.others, ledger.limits, monotonic)),
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
  const { view, refusals } = ledger.accounts[category];
  const { at, hold } = opening(ledger, category, "detail", now);
  return {
    configured: {
      requests: ledger.limits.categories[category].requests,
      burst: ledger.limits.categories[category].burst,
      window_seconds: seconds(ledger.limits.categories[category].windowMs),
    },
    stated:
      view.stated === null
        ? null
        : { limit: view.stated.limit, remaining: view.stated.remaining, age_seconds: seconds(now - view.stated.at) },
    remaining_at_least: leastRemaining(view),
    calls: view.sent,
    in_flight: underWay(view),
    consecutive_refusals: refusals,
    others: { calls: ledger.others[category].total(), expected_per_window: ledger.others[category].expected(now) },
    next_poll: {
      in_seconds: Number.isFinite(at) ? seconds(Math.max(0, at - now)) : null,
      held_by: hold satisfies Hold | null,
    },
  };
}

function collectorView({ plan, collectors, monotonic, snapshot }: Scene, collector: Collector): object {
  const planned = plan[collector];
  const { lastSuccessAt, lastDurationMs, complete, failure } = collectors[collector];
  return {
    planned:
      planned === null
        ? null
        : {
            wish_seconds: seconds(planned.wishMs),
            interval_seconds: seconds(planned.pacedMs),
            fresh_seconds: seconds(planned.freshMs),
            stretch: Number((planned.pacedMs / planned.wishMs).toFixed(3)),
            bound_by: planned.boundBy,
            calls_per_minute: Number(planned.callsPerMinute.toFixed(3)),
          },
    last_success_at: iso(lastSuccessAt),
    last_duration_seconds: seconds(lastDurationMs),
    complete,
    age_seconds: snapshot === null ? null : ages(snapshot, collector, monotonic),
    failure: failure === null ? null : { reason: failure.kind, message: failure.message },
  };
}

/** Median and greatest age of what a collector brought; null: nothing yet. */
function ages(snapshot: Snapshot, collector: Collector, now: MonotonicMs): object | null {
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

function matching(fleet: Fleet, query: NodesQuery): number[] {
  const q = query.q?.toLowerCase() ?? null;
  const status = query.status === null ? null : NODE_STATUSES.indexOf(query.status);
  const slots: number[] = [];
  for (const slot of orderOf(fleet)) {
    if (status !== null && fleet.status[slot] !== status) continue;
    const place = fleet.places[fleet.place[slot]!];
    if (query.country !== null && place?.country !== query.country) continue;
    if (query.region !== null && place?.region !== query.region) continue;
    const texts = [fleet.ids[slot]!, fleet.names[slot]!, fleet.ipAddresses[slot]!];
    if (q === null || texts.some((text) => text.toLowerCase().includes(q))) slots.push(slot);
  }
  return slots;
}

function listView(scene: Scene, fleet: Fleet, slot: number): object {
  const place = fleet.places[fleet.place[slot]!];
  return {
    id: fleet.ids[slot],
    name: text(fleet.names[slot]),
    status: NODE_STATUSES[fleet.status[slot]!],
    country: text(place?.country),
    region: text(place?.region),
    ip_address: text(fleet.ipAddresses[slot]),
    version: text(fleet.versions[slot]),
    last_seen: iso(fleet.lastSeenMs[slot]),
    uptime_hours: number(fleet.uptimeHours[slot]),
    active_sessions: number(fleet.activeSessions[slot]),
    bandwidth_gb: number(fleet.bandwidthGb[slot]),
    age_seconds: age(scene, fleet.listedAt[slot]),
  };
}

function nodeSessions({ snapshot }: Scene, id: string): object | null {
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

const number = (value: number | undefined): number | null => (isKnown(value) ? value : null);
const text = (value: string | undefined): string | null => value || null;
const age = ({ monotonic }: Scene, at: MonotonicMs | undefined): number | null =>
  isKnown(at) ? seconds(monotonic - at) : null;
