import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { oncePerObject } from "../../base/once-per-key.ts";
import { type DetailNumber, LISTED_NUMBERS, type ListedNumber, NODE_STATUSES, type NodeId } from "../../model/node.ts";
import type { Usage } from "../../model/policy/policy.ts";
import { SESSION_STATUSES, type SessionStatus } from "../../model/session.ts";
import type { Dated, Fleet, SessionNodes, SessionSummary, TextColumn } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import type { FleetAggregates, NodeCounts } from "./fleet-aggregates.ts";
import type { Value } from "./term.ts";

/**
 * Why a field has no value: `missing`: the service did not report it; `undeclared_scale`: no usage scale is declared,
 * or a value contradicted it; `in_future`: the timestamp is later than its observation, so one of the clocks is
 * wrong; `unassigned`: too many sessions name no node of the fleet; `past`: some listed sessions have failed, but none
 * of them recently, so the node may have recovered.
 */
export type MissingReason = "missing" | "undeclared_scale" | "in_future" | "unassigned" | "past";

/** A snapshot, as fields are read from it. */
export interface ScopeData {
  readonly fleet: Fleet;
  readonly sessions: SessionSummary | null;
  /** Converts a time to the service's clock, or null if that clock is unknown. */
  readonly serviceTime: (at: MonotonicMs) => EpochMs | null;
  readonly aggregates: FleetAggregates;
}

/**
 * Returns the value of a field for the node in a slot, which must not be empty, with the time at which it was observed,
 * which may be before `freshFrom`. Medians leave out values from before `freshFrom`.
 */
export type FieldReader = (data: ScopeData, slot: number, freshFrom: MonotonicMs) => Dated<Value> | MissingReason;

/**
 * Slots by id for successive columns of ids, in which most slots keep their id. A new map of a hundred thousand ids
 * blocks the event loop for more than ten milliseconds; an update takes a fraction of that.
 */
export class SlotIndex {
  readonly #slots = new Map<string, number>();
  #ids: readonly string[] = [];

  /** Returns the slots of the ids, except "", which marks an empty slot. The map is valid until the next call. */
  of(ids: readonly string[]): ReadonlyMap<string, number> {
    if (ids === this.#ids) return this.#slots;
    const previous = this.#ids;
    for (let slot = 0; slot < Math.max(previous.length, ids.length); slot++) {
      const [before, now] = [previous[slot] ?? "", ids[slot] ?? ""];
      if (before === now) continue;
      // The id may have moved to a lower slot.
      if (this.#slots.get(before) === slot) this.#slots.delete(before);
      if (now !== "") this.#slots.set(now, slot);
    }
    this.#ids = ids;
    return this.#slots;
  }
}

const fleetSlots = new SlotIndex();
const sessionSlots = new SlotIndex();

/** Returns the slots of a fleet by id. The map is valid until the next call. */
export const slotsById = ({ ids }: Pick<Fleet, "ids">): ReadonlyMap<NodeId, number> => fleetSlots.of(ids);

/** Returns the slot of a node in the sessions by node, or undefined if no session names the node. */
export const slotOfSessions = ({ ids }: Pick<SessionNodes, "ids">, node: NodeId): number | undefined =>
  sessionSlots.of(ids).get(node);

/**
 * Returns 1 for each slot that has a node, and 0 for empty ones. Computed once for each column of ids. Comparing a
 * hundred thousand strings with "" takes milliseconds, because each is read from another place in memory.
 */
export const occupiedSlots = oncePerObject((ids: readonly string[]): Uint8Array => {
  const occupied = new Uint8Array(ids.length);
  for (let slot = 0; slot < ids.length; slot++) if (ids[slot] !== "") occupied[slot] = 1;
  return occupied;
});

const textValue = (value: string, at: MonotonicMs): Dated<string> | MissingReason =>
  value !== "" && Number.isFinite(at) ? { value, at } : "missing";

const numberValue = (value: number, at: MonotonicMs): Dated<number> | MissingReason =>
  Number.isFinite(value) && Number.isFinite(at) ? { value, at } : "missing";

/** A text from the node list. */
export const listText =
  (column: "ids" | TextColumn): FieldReader =>
  ({ fleet }, slot) =>
    textValue(fleet[column][slot]!, fleet.listedAt.at(slot));

type NumberColumn = Exclude<ListedNumber | DetailNumber, Usage>;

/** Returns the column with the times at which the values of another column were observed. */
const observationOf = (column: NumberColumn) => (column in LISTED_NUMBERS ? "listedAt" : "detailedAt");

/** A number from the node list or a detail, except usage. */
export function nodeNumber(column: NumberColumn): FieldReader {
  const observedAt = observationOf(column);
  return ({ fleet }, slot) => numberValue(fleet[column].at(slot), fleet[observedAt].at(slot));
}

/** The country or region of the node, from the node list. */
export const locationText =
  (part: "country" | "region"): FieldReader =>
  ({ fleet }, slot) =>
    textValue(fleet.locations[fleet.locationIndex[slot]!]?.[part] ?? "", fleet.listedAt.at(slot));

/** The status of the node, from the node list. */
export const nodeStatus: FieldReader = ({ fleet }, slot) => {
  const value = NODE_STATUSES[fleet.status[slot]!] ?? "unknown";
  return textValue(value === "unknown" ? "" : value, fleet.listedAt.at(slot));
};

/**
 * How much later than its observation a timestamp may be. Our estimate of the service's clock is off by
 * milliseconds, and the clocks of nodes may be off by more.
 */
const FUTURE_MS_MAX = MINUTE_MS;

/** The longest time between a request and its response: the largest `service.timeout`. */
const REQUEST_MS_MAX = 5 * MINUTE_MS;

/**
 * A timestamp from the node list or a detail. If the service's clock was set ahead after it, it is moved by as much, so
 * that a step of the clock does not count as time without a report.
 */
export function timestamp(column: NumberColumn): FieldReader {
  const observedAt = observationOf(column);
  return ({ fleet, serviceTime }, slot) => {
    const datum = numberValue(fleet[column].at(slot), fleet[observedAt].at(slot));
    if (typeof datum === "string") return datum;
    const observed = serviceTime(datum.at);
    if (observed === null) return datum;
    if (datum.value > observed + FUTURE_MS_MAX) return "in_future";
    const stepMs = stepSince(datum.value, datum.at - observed, serviceTime);
    return stepMs === 0 ? datum : { value: datum.value + stepMs, at: datum.at };
  };
}

/**
 * Returns by how much the service's clock was set ahead since it showed `time`, 0 if it was not. `offset` is our
 * monotonic clock minus the service's clock as it is set now.
 */
function stepSince(time: EpochMs, offset: number, serviceTime: ScopeData["serviceTime"]): DurationMs {
  const stepMs = time - (serviceTime(time + offset) ?? time);
  if (stepMs < SECOND_MS) return 0;
  // A time that the step skipped was never shown. The clock was set between a request and its response, so the step may
  // have been later than `serviceTime` assumes.
  const shown = serviceTime(time + offset + stepMs - REQUEST_MS_MAX) ?? Number.NaN;
  return Math.abs(shown + REQUEST_MS_MAX - time) < SECOND_MS ? stepMs : 0;
}

/** A usage from a detail. */
export const usage =
  (column: Usage): FieldReader =>
  ({ fleet }, slot) =>
    fleet.usageKnown ? numberValue(fleet[column].at(slot), fleet.detailedAt.at(slot)) : "undeclared_scale";

/** When the node's record in the node list was observed, on the service's clock. */
export const recordTime: FieldReader = ({ fleet, serviceTime }, slot) => {
  const at = fleet.listedAt.at(slot);
  return numberValue(serviceTime(at) ?? Number.NaN, at);
};

interface SessionCounts {
  readonly of: (status: SessionStatus) => number;
  readonly total: number;
  /** Consecutive walks that showed no new failure. */
  readonly quietWalks: number;
  readonly at: MonotonicMs;
}

/**
 * Returns the sessions of a node by status, which are zero if none names the node. They are missing if the last walk of
 * the sessions was not complete, or may have counted sessions of the node under `other`.
 */
function countSessions({ fleet, sessions }: ScopeData, slot: number): SessionCounts | MissingReason {
  if (sessions?.complete !== true) return "missing";
  const { recent, quietWalks, isFolded, isUnassigned } = sessions.nodes;
  if (isUnassigned) return "unassigned";
  const row = slotOfSessions(sessions.nodes, fleet.ids[slot]!);
  if (row === undefined && isFolded) return "missing";
  const of = (status: SessionStatus) =>
    row === undefined ? 0 : (recent[SESSION_STATUSES.indexOf(status)]?.[row] ?? 0);
  const total = SESSION_STATUSES.reduce((sum, status) => sum + of(status), 0);
  return { of, total, quietWalks: row === undefined ? 0 : quietWalks[row]!, at: sessions.observedFrom };
}

/** All sessions of the node, regardless of their status. */
export const sessionTotal: FieldReader = (data, slot) => {
  const counts = countSessions(data, slot);
  return typeof counts === "string" ? counts : numberValue(counts.total, counts.at);
};

/** Sessions of one status. A session of unknown status could have any status, so the count is then missing. */
export const sessionCount =
  (status: SessionStatus): FieldReader =>
  (data, slot) => {
    const counts = countSessions(data, slot);
    if (typeof counts === "string") return counts;
    return counts.of("unknown") > 0 ? "missing" : numberValue(counts.of(status), counts.at);
  };

/**
 * After this many walks without a new failure, failed sessions no longer count, since the list may show them for days.
 */
const QUIET_WALKS_MAX = 3;

/**
 * A number that depends on failed sessions. It is missing until the list has shown a failed session, because the list
 * may leave them out. While the list shows failed sessions but no new ones, it is not known whether the node still
 * fails. After some walks it is known that it does not.
 */
const failures =
  (statuses: readonly SessionStatus[], read: (failed: number, total: number) => number): FieldReader =>
  (data, slot) => {
    const counts = data.sessions?.failedListed === true ? countSessions(data, slot) : "missing";
    if (typeof counts === "string") return counts;
    if (counts.of("unknown") > 0) return "missing";
    const failed = statuses.reduce((sum, status) => sum + counts.of(status), 0);
    const isRecent = failed === 0 || counts.quietWalks === 0;
    if (!isRecent && counts.quietWalks < QUIET_WALKS_MAX) return "past";
    return numberValue(read(isRecent ? failed : 0, counts.total), counts.at);
  };

/** Failed sessions of one status. */
export const failedSessionCount = (status: SessionStatus): FieldReader => failures([status], (failed) => failed);

/** Share of all sessions that failed; missing if there are no sessions. */
export const failedSessionShare: FieldReader = failures(["error", "timeout"], (failed, total) => failed / total);

/** What an aggregate covers. */
export type AggregateScope = "fleet" | "region";

/** Returns the key of an aggregate, or undefined if the node's record names no region. */
const aggregateKey = (scope: AggregateScope, { fleet }: ScopeData, slot: number): string | null | undefined =>
  scope === "fleet" ? null : fleet.locations[fleet.locationIndex[slot]!]?.region || undefined;

/** A number computed from node counts of the fleet or the node's region. */
export const aggregateCount =
  (scope: AggregateScope, read: (counts: NodeCounts) => number): FieldReader =>
  (data, slot) => {
    const key = aggregateKey(scope, data, slot);
    const counts = key === undefined ? null : data.aggregates.counts(key);
    return counts === null ? "missing" : numberValue(read(counts.value), counts.at);
  };

/** The median usage of the fleet or the node's region. */
export const aggregateMedian =
  (scope: AggregateScope, column: Usage): FieldReader =>
  (data, slot, freshFrom) => {
    if (!data.fleet.usageKnown) return "undeclared_scale";
    const key = aggregateKey(scope, data, slot);
    return (key === undefined ? null : data.aggregates.median(key, column, freshFrom)) ?? "missing";
  };
