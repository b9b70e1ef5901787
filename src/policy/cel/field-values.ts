import { MINUTE_MS } from "../../base/duration.ts";
import { NODE_STATUSES, type NodeId } from "../../model/node.ts";
import { SESSION_STATUSES, type SessionStatus } from "../../model/session.ts";
import type { Dated, Fleet, SessionSummary, Snapshot, TextColumn } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import type { Field, FieldName } from "./fields.ts";
import { type FleetAggregates, fleetAggregates, type UsageColumn } from "./fleet-aggregates.ts";
import type { Value } from "./term.ts";

/**
 * Why there is no value: `missing`: the service did not report it; `undeclared_scale`: no usage scale is declared, or a value
 * contradicted it; `in_future`: a timestamp later than its own observation, so that one of the clocks is wrong; `past`:
 * sessions that are listed have failed, and none of them just now: the node may be well again.
 */
export type MissingReason = "missing" | "undeclared_scale" | "in_future" | "past";

/** One node, as expressions read it. */
export interface EvaluatedNode {
  readonly id: NodeId;
  /** Value of a field, with its own age, which is for the caller to judge. Medians leave out what is older than `freshFrom`. */
  read(field: Field, freshFrom: MonotonicMs): Dated<Value> | MissingReason;
}

/** A snapshot, as expressions read it. */
export interface EvaluationScope {
  /** The node in a slot that is not empty. */
  nodeAt(slot: number): EvaluatedNode;
  /** The node of that id; null: it is not in the fleet. */
  find(id: NodeId): EvaluatedNode | null;
}

/**
 * How far a timestamp may lie after the observation that brought it: the service's clock is known to some
 * milliseconds, its nodes' clocks need not be.
 */
const FUTURE_MS_MAX = MINUTE_MS;

/** `serviceTime`: what the service's clock read at a moment; null: it is not known. */
export function createEvaluationScope(
  snapshot: Snapshot,
  serviceTime: (at: MonotonicMs) => EpochMs | null,
): EvaluationScope {
  const { fleet, sessions } = snapshot;
  const view: ScopeData = { fleet, sessions, serviceTime, aggregates: fleetAggregates(fleet) };
  const nodeAt = (slot: number): EvaluatedNode => ({
    id: fleet.ids[slot]!,
    read: (field, freshFrom) => FIELD_READERS[field.name](view, slot, freshFrom),
  });
  return {
    nodeAt,
    find(id) {
      const slot = slotsById(fleet.ids).get(id);
      return slot === undefined ? null : nodeAt(slot);
    },
  };
}

interface ScopeData {
  readonly fleet: Fleet;
  readonly sessions: SessionSummary | null;
  readonly serviceTime: (at: MonotonicMs) => EpochMs | null;
  readonly aggregates: FleetAggregates;
}

type FieldReader = (view: ScopeData, slot: number, freshFrom: MonotonicMs) => Dated<Value> | MissingReason;

const slotIndexesByIds = new WeakMap<readonly string[], ReadonlyMap<NodeId, number>>();

/** Slots by id, kept for as long as the column is. */
export function slotsById(ids: readonly string[]): ReadonlyMap<NodeId, number> {
  const known = slotIndexesByIds.get(ids);
  if (known !== undefined) return known;
  const slots = new Map<NodeId, number>();
  for (const [slot, id] of ids.entries()) if (id !== "") slots.set(id, slot);
  slotIndexesByIds.set(ids, slots);
  return slots;
}

type ListedNumber = "uptimeHours" | "activeSessions" | "bandwidthGb";
type Timestamp = "lastSeenMs" | "createdAtMs" | "updatedAtMs";

const textValue = (value: string, at: MonotonicMs): Dated<string> | MissingReason =>
  value !== "" && Number.isFinite(at) ? { value, at } : "missing";

const numberValue = (value: number, at: MonotonicMs): Dated<number> | MissingReason =>
  Number.isFinite(value) && Number.isFinite(at) ? { value, at } : "missing";

const listTextField =
  (column: "ids" | TextColumn): FieldReader =>
  ({ fleet }, slot) =>
    textValue(fleet[column][slot]!, fleet.listedAt[slot]!);

const listNumberField =
  (column: ListedNumber): FieldReader =>
  ({ fleet }, slot) =>
    numberValue(fleet[column][slot]!, fleet.listedAt[slot]!);

const locationField =
  (part: "country" | "region"): FieldReader =>
  ({ fleet }, slot) =>
    textValue(fleet.locations[fleet.locationIndex[slot]!]?.[part] ?? "", fleet.listedAt[slot]!);

const statusField: FieldReader = ({ fleet }, slot) => {
  const value = NODE_STATUSES[fleet.status[slot]!] ?? "unknown";
  return textValue(value === "unknown" ? "" : value, fleet.listedAt[slot]!);
};

const timestampField =
  (column: Timestamp, observedAt: "listedAt" | "detailedAt"): FieldReader =>
  ({ fleet, serviceTime }, slot) => {
    const datum = numberValue(fleet[column][slot]!, fleet[observedAt][slot]!);
    if (typeof datum === "string") return datum;
    const timestampMs = serviceTime(datum.at);
    return timestampMs !== null && datum.value > timestampMs + FUTURE_MS_MAX ? "in_future" : datum;
  };

const usageField =
  (column: UsageColumn): FieldReader =>
  ({ fleet }, slot) =>
    fleet.usageKnown ? numberValue(fleet[column][slot]!, fleet.detailedAt[slot]!) : "undeclared_scale";

const nowField: FieldReader = ({ fleet, serviceTime }, slot) => {
  const at = fleet.listedAt[slot]!;
  return numberValue(serviceTime(at) ?? Number.NaN, at);
};

/** Sessions of a node by status; null: the last walk of the sessions was not complete, or there was none yet. A node that none names has none.
 */
function sessionCounts({ fleet, sessions }: ScopeData, slot: number): SessionCounts | null {
  if (sessions?.complete !== true) return null;
  const { ids, recent, quietWalks } = sessions.nodes;
  const row = slotsById(ids).get(fleet.ids[slot]!);
  const of = (status: SessionStatus) =>
    row === undefined ? 0 : (recent[SESSION_STATUSES.indexOf(status)]?.[row] ?? 0);
  return { of, quietWalks: row === undefined ? 0 : quietWalks[row]! };
}

/** After so many walks without a fresh failure those that are still listed don't count: a list may keep them for days. */
const QUIET_WALKS_MAX = 3;

interface SessionCounts {
  readonly of: (status: SessionStatus) => number;
  readonly quietWalks: number;
}

/** What sessions say; missing before the first complete walk, and where one is of a state that may be any. */
const sessionField =
  (read: (counts: SessionCounts) => number | MissingReason): FieldReader =>
  (view, slot) => {
    const counts = sessionCounts(view, slot);
    if (counts === null || counts.of("unknown") > 0) return "missing";
    const value = read(counts);
    return typeof value === "string" ? value : numberValue(value, view.sessions!.settledAt);
  };

/**
 * What failed sessions say. Where the list has never shown one it may well leave them out: none seen is not none. Those
 * that are listed may be of the past: without a fresh one among them it is not known whether the node fails, and after
 * some walks without it is known not to.
 */
const failureField =
  (statuses: readonly SessionStatus[], read: (failures: number, counts: SessionCounts) => number): FieldReader =>
  (view, slot, freshFrom) => {
    if (view.sessions?.failedListed !== true) return "missing";
    return sessionField((counts) => {
      const failures = statuses.reduce((total, status) => total + counts.of(status), 0);
      if (failures === 0 || counts.quietWalks === 0) return read(failures, counts);
      return counts.quietWalks < QUIET_WALKS_MAX ? "past" : read(0, counts);
    })(view, slot, freshFrom);
  };

const totalSessions = ({ of }: SessionCounts): number =>
  SESSION_STATUSES.reduce((total, status) => total + of(status), 0);

const sessionsTotalField: FieldReader = (view, slot) => {
  const counts = sessionCounts(view, slot);
  return counts === null ? "missing" : numberValue(totalSessions(counts), view.sessions!.settledAt);
};

const statusCountField = (status: SessionStatus): FieldReader => sessionField(({ of }) => of(status));
const failedCountField = (status: SessionStatus): FieldReader => failureField([status], (failures) => failures);
/** Without sessions it is 0 by 0: missing. */
const failedRatioField: FieldReader = failureField(
  ["error", "timeout"],
  (failures, counts) => failures / totalSessions(counts),
);

type AggregateScope = "fleet" | "region";

/** The key of the aggregates that are asked for; undefined: the node's record names no region. */
function aggregateKey(area: AggregateScope, { fleet }: ScopeData, slot: number): string | null | undefined {
  return area === "fleet" ? null : fleet.locations[fleet.locationIndex[slot]!]?.region || undefined;
}

const aggregateCountField =
  (area: AggregateScope, read: (counts: { readonly nodes: number; readonly online: number }) => number): FieldReader =>
  (view, slot) => {
    const key = aggregateKey(area, view, slot);
    const counts = key === undefined ? null : view.aggregates.counts(key);
    return counts === null ? "missing" : numberValue(read(counts.value), counts.at);
  };

const aggregateMedianField =
  (area: AggregateScope, column: UsageColumn): FieldReader =>
  (view, slot, freshFrom) => {
    if (!view.fleet.usageKnown) return "undeclared_scale";
    const key = aggregateKey(area, view, slot);
    return (key === undefined ? null : view.aggregates.median(key, column, freshFrom)) ?? "missing";
  };

const FIELD_READERS: Readonly<Record<FieldName, FieldReader>> = {
  "node.id": listTextField("ids"),
  "node.name": listTextField("name"),
  "node.status": statusField,
  "node.country": locationField("country"),
  "node.region": locationField("region"),
  "node.ip_address": listTextField("ipAddress"),
  "node.version": listTextField("version"),
  "node.last_seen": timestampField("lastSeenMs", "listedAt"),
  "node.uptime_hours": listNumberField("uptimeHours"),
  "node.active_sessions": listNumberField("activeSessions"),
  "node.bandwidth_gb": listNumberField("bandwidthGb"),
  "node.cpu_usage": usageField("cpuUsage"),
  "node.memory_usage": usageField("memoryUsage"),
  "node.disk_usage": usageField("diskUsage"),
  "node.created_at": timestampField("createdAtMs", "detailedAt"),
  "node.updated_at": timestampField("updatedAtMs", "detailedAt"),
  "sessions.total": sessionsTotalField,
  "sessions.active": statusCountField("active"),
  "sessions.connecting": statusCountField("connecting"),
  "sessions.closed": statusCountField("closed"),
  "sessions.error": failedCountField("error"),
  "sessions.timeout": failedCountField("timeout"),
  "sessions.failed_ratio": failedRatioField,
  "fleet.nodes": aggregateCountField("fleet", ({ nodes }) => nodes),
  "fleet.online": aggregateCountField("fleet", ({ online }) => online),
  "fleet.online_ratio": aggregateCountField("fleet", ({ nodes, online }) => online / nodes),
  "fleet.median.cpu_usage": aggregateMedianField("fleet", "cpuUsage"),
  "fleet.median.memory_usage": aggregateMedianField("fleet", "memoryUsage"),
  "fleet.median.disk_usage": aggregateMedianField("fleet", "diskUsage"),
  "region.nodes": aggregateCountField("region", ({ nodes }) => nodes),
  "region.online": aggregateCountField("region", ({ online }) => online),
  "region.online_ratio": aggregateCountField("region", ({ nodes, online }) => online / nodes),
  "region.median.cpu_usage": aggregateMedianField("region", "cpuUsage"),
  "region.median.memory_usage": aggregateMedianField("region", "memoryUsage"),
  "region.median.disk_usage": aggregateMedianField("region", "diskUsage"),
  now: nowField,
};
