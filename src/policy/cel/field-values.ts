import { MINUTE_MS } from "../../base/duration.ts";
import { NODE_STATUSES, type NodeId } from "../../model/node.ts";
import { SESSION_STATUSES, type SessionStatus } from "../../model/session.ts";
import type { Dated, Fleet, SessionsView, Snapshot } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { type Aggregates, aggregatesOf, type UsageColumn } from "./fleet-aggregates.ts";
import type { Field, FieldName } from "./fields.ts";
import type { Value } from "./term.ts";

/**
 * Why there is no value: `missing`: the service did not report it; `undeclared_scale`: no usage scale is declared, or a value
 * contradicted it; `in_future`: a timestamp later than its own observation, so that one of the clocks is wrong; `past`:
 * sessions that are listed have failed, and none of them just now: the node may be well again.
 */
export type Absence = "missing" | "undeclared_scale" | "in_future" | "past";

/** One node, as expressions read it. */
export interface Subject {
  readonly id: NodeId;
  /** Value of a field, with its own age, which is for the caller to judge. Medians leave out what is older than `freshFrom`. */
  read(field: Field, freshFrom: MonotonicMs): Dated<Value> | Absence;
}

/** A snapshot, as expressions read it. */
export interface Scope {
  /** The node in a slot that is not empty. */
  subject(slot: number): Subject;
  /** The node of that id; null: it is not in the fleet. */
  find(id: NodeId): Subject | null;
}

/**
 * How far a timestamp may lie after the observation that brought it: the service's clock is known to some
 * milliseconds, its nodes' clocks need not be.
 */
const FUTURE_MS_MAX = MINUTE_MS;

/** `serviceTime`: what the service's clock read at a moment; null: it is not known. */
export function createScope(snapshot: Snapshot, serviceTime: (at: MonotonicMs) => EpochMs | null): Scope {
  const { fleet, sessions } = snapshot;
  const view: View = { fleet, sessions, serviceTime, aggregates: aggregatesOf(fleet) };
  const subject = (slot: number): Subject => ({
    id: fleet.ids[slot]!,
    read: (field, freshFrom) => readers[field.name](view, slot, freshFrom),
  });
  return {
    subject,
    find(id) {
      const slot = slotsOf(fleet.ids).get(id);
      return slot === undefined ? null : subject(slot);
    },
  };
}

interface View {
  readonly fleet: Fleet;
  readonly sessions: SessionsView | null;
  readonly serviceTime: (at: MonotonicMs) => EpochMs | null;
  readonly aggregates: Aggregates;
}

type Reader = (view: View, slot: number, freshFrom: MonotonicMs) => Dated<Value> | Absence;

const slotIndexes = new WeakMap<readonly string[], ReadonlyMap<NodeId, number>>();

/** Slots by id, kept for as long as the column is. */
export function slotsOf(ids: readonly string[]): ReadonlyMap<NodeId, number> {
  const known = slotIndexes.get(ids);
  if (known !== undefined) return known;
  const slots = new Map<NodeId, number>();
  for (const [slot, id] of ids.entries()) if (id !== "") slots.set(id, slot);
  slotIndexes.set(ids, slots);
  return slots;
}

type ListedNumber = "uptimeHours" | "activeSessions" | "bandwidthGb";
type Timestamp = "lastSeenMs" | "createdAtMs" | "updatedAtMs";

const text = (value: string, at: MonotonicMs): Dated<string> | Absence =>
  value !== "" && Number.isFinite(at) ? { value, at } : "missing";

const number = (value: number, at: MonotonicMs): Dated<number> | Absence =>
  Number.isFinite(value) && Number.isFinite(at) ? { value, at } : "missing";

const listedText =
  (column: "ids" | "names" | "ipAddresses" | "versions"): Reader =>
  ({ fleet }, slot) =>
    text(fleet[column][slot]!, fleet.listedAt[slot]!);

const listedNumber =
  (column: ListedNumber): Reader =>
  ({ fleet }, slot) =>
    number(fleet[column][slot]!, fleet.listedAt[slot]!);

const placeName =
  (part: "country" | "region"): Reader =>
  ({ fleet }, slot) =>
    text(fleet.places[fleet.place[slot]!]?.[part] ?? "", fleet.listedAt[slot]!);

const status: Reader = ({ fleet }, slot) => {
  const value = NODE_STATUSES[fleet.status[slot]!] ?? "unknown";
  return text(value === "unknown" ? "" : value, fleet.listedAt[slot]!);
};

const timestamp =
  (column: Timestamp, observedAt: "listedAt" | "detailedAt"): Reader =>
  ({ fleet, serviceTime }, slot) => {
    const datum = number(fleet[column][slot]!, fleet[observedAt][slot]!);
    if (typeof datum === "string") return datum;
    const then = serviceTime(datum.at);
    return then !== null && datum.value > then + FUTURE_MS_MAX ? "in_future" : datum;
  };

const usage =
  (column: UsageColumn): Reader =>
  ({ fleet }, slot) =>
    fleet.usageKnown ? number(fleet[column][slot]!, fleet.detailedAt[slot]!) : "undeclared_scale";

const now: Reader = ({ fleet, serviceTime }, slot) => {
  const at = fleet.listedAt[slot]!;
  return number(serviceTime(at) ?? Number.NaN, at);
};

/** Sessions of a node by status; null: the last walk of the sessions was not complete, or there was none yet. A node that none names has none.
 */
function sessionCounts({ fleet, sessions }: View, slot: number): SessionCounts | null {
  if (sessions?.complete !== true) return null;
  const { ids, recent, quietWalks } = sessions.nodes;
  const row = slotsOf(ids).get(fleet.ids[slot]!);
  const of = (status: SessionStatus) =>
    row === undefined ? 0 : (recent[SESSION_STATUSES.indexOf(status)]?.[row] ?? 0);
  return { of, quietWalks: row === undefined ? 0 : quietWalks[row]! };
}

/** After so many walks without a fresh failure those that are still listed don't count: a list may keep them for days. */
const PAST_WALKS = 3;

interface SessionCounts {
  readonly of: (status: SessionStatus) => number;
  readonly quietWalks: number;
}

/** What sessions say; missing before the first complete walk, and where one is of a state that may be any. */
const sessionsOf =
  (read: (counts: SessionCounts) => number | Absence): Reader =>
  (view, slot) => {
    const counts = sessionCounts(view, slot);
    if (counts === null || counts.of("unknown") > 0) return "missing";
    const value = read(counts);
    return typeof value === "string" ? value : number(value, view.sessions!.settledAt);
  };

/**
 * What failed sessions say. Where the list has never shown one it may well leave them out: none seen is not none. Those
 * that are listed may be of the past: without a fresh one among them it is not known whether the node fails, and after
 * some walks without it is known not to.
 */
const failuresOf =
  (statuses: readonly SessionStatus[], read: (failures: number, counts: SessionCounts) => number): Reader =>
  (view, slot, freshFrom) => {
    if (view.sessions?.failedListed !== true) return "missing";
    return sessionsOf((counts) => {
      const failures = statuses.reduce((total, status) => total + counts.of(status), 0);
      if (failures === 0 || counts.quietWalks === 0) return read(failures, counts);
      return counts.quietWalks < PAST_WALKS ? "past" : read(0, counts);
    })(view, slot, freshFrom);
  };

const sum = ({ of }: SessionCounts): number => SESSION_STATUSES.reduce((total, status) => total + of(status), 0);

const sessionsTotal: Reader = (view, slot) => {
  const counts = sessionCounts(view, slot);
  return counts === null ? "missing" : number(sum(counts), view.sessions!.settledAt);
};

const sessionsIn = (status: SessionStatus): Reader => sessionsOf(({ of }) => of(status));
const failedIn = (status: SessionStatus): Reader => failuresOf([status], (failures) => failures);
/** Without sessions it is 0 by 0: missing. */
const failedRatio: Reader = failuresOf(["error", "timeout"], (failures, counts) => failures / sum(counts));

type Area = "fleet" | "region";

/** The key of the aggregates that are asked for; undefined: the node's record names no region. */
function areaOf(area: Area, { fleet }: View, slot: number): string | null | undefined {
  return area === "fleet" ? null : fleet.places[fleet.place[slot]!]?.region || undefined;
}

const counted =
  (area: Area, read: (counts: { readonly nodes: number; readonly online: number }) => number): Reader =>
  (view, slot) => {
    const key = areaOf(area, view, slot);
    const counts = key === undefined ? null : view.aggregates.counts(key);
    return counts === null ? "missing" : number(read(counts.value), counts.at);
  };

const median =
  (area: Area, column: UsageColumn): Reader =>
  (view, slot, freshFrom) => {
    if (!view.fleet.usageKnown) return "undeclared_scale";
    const key = areaOf(area, view, slot);
    return (key === undefined ? null : view.aggregates.median(key, column, freshFrom)) ?? "missing";
  };

const readers: Readonly<Record<FieldName, Reader>> = {
  "node.id": listedText("ids"),
  "node.name": listedText("names"),
  "node.status": status,
  "node.country": placeName("country"),
  "node.region": placeName("region"),
  "node.ip_address": listedText("ipAddresses"),
  "node.version": listedText("versions"),
  "node.last_seen": timestamp("lastSeenMs", "listedAt"),
  "node.uptime_hours": listedNumber("uptimeHours"),
  "node.active_sessions": listedNumber("activeSessions"),
  "node.bandwidth_gb": listedNumber("bandwidthGb"),
  "node.cpu_usage": usage("cpuUsage"),
  "node.memory_usage": usage("memoryUsage"),
  "node.disk_usage": usage("diskUsage"),
  "node.created_at": timestamp("createdAtMs", "detailedAt"),
  "node.updated_at": timestamp("updatedAtMs", "detailedAt"),
  "sessions.total": sessionsTotal,
  "sessions.active": sessionsIn("active"),
  "sessions.connecting": sessionsIn("connecting"),
  "sessions.closed": sessionsIn("closed"),
  "sessions.error": failedIn("error"),
  "sessions.timeout": failedIn("timeout"),
  "sessions.failed_ratio": failedRatio,
  "fleet.nodes": counted("fleet", ({ nodes }) => nodes),
  "fleet.online": counted("fleet", ({ online }) => online),
  "fleet.online_ratio": counted("fleet", ({ nodes, online }) => online / nodes),
  "fleet.median.cpu_usage": median("fleet", "cpuUsage"),
  "fleet.median.memory_usage": median("fleet", "memoryUsage"),
  "fleet.median.disk_usage": median("fleet", "diskUsage"),
  "region.nodes": counted("region", ({ nodes }) => nodes),
  "region.online": counted("region", ({ online }) => online),
  "region.online_ratio": counted("region", ({ nodes, online }) => online / nodes),
  "region.median.cpu_usage": median("region", "cpuUsage"),
  "region.median.memory_usage": median("region", "memoryUsage"),
  "region.median.disk_usage": median("region", "diskUsage"),
  now,
};
