import { DAY_MS, type DurationMs } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { OnLabelsFolded } from "../model/label-values.ts";
import {
  DETAIL_NUMBER_NAMES,
  type DetailNumber,
  LISTED_NUMBER_NAMES,
  NODE_STATUSES,
  type NodeDetail,
  type NodeId,
  type NodeRecord,
} from "../model/node.ts";
import { type Threshold, USAGES } from "../model/policy/policy.ts";
import type { Fleet, WalkResult } from "../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { createDetailPriority, type DetailChoice, type SuspectCause } from "../scheduling/detail-priority.ts";
import type { UsageReading } from "../scheduling/usage-trend.ts";
import { createAbsenceTracker, type LookupResult } from "./absence.ts";
import { createLocationTable } from "./locations.ts";
import { createColumns } from "./node-columns.ts";
import { createUsageScaleCheck, type UsageScale } from "./usage-scale.ts";
import { allowedMissing, missingRecords } from "./walk-completeness.ts";

/** The fleet as the walks and detail reads make it; hands out immutable copies. */
export interface Inventory {
  /** Takes in a list record. True if this walk had not shown the node before. */
  recordListed(record: NodeRecord, at: MonotonicMs): boolean;
  /** At most `max` nodes that the walk under way has not shown and that are due to be looked up by id, longest absent first. */
  nodesToLookUp(max: number): readonly NodeId[];
  /** Takes in how the lookup of a node that the walk under way has not shown ended. `gone`: there is no such node (404). */
  recordLookup(id: NodeId, found: LookupResult, at: MonotonicMs): void;
  /** When a detail was last read; null: never. */
  lastDetailAt(): MonotonicMs | null;
  /** A node that the walk under way has shown; null: there is none. */
  anyListed(): NodeId | null;
  /** Ends a walk and returns what it came to. Nodes that enough walks in a row did not show are gone. */
  endWalk(walk: WalkSummary, at: MonotonicMs): WalkResult;
  /** Accepts that walks miss so many nodes: an operator says that this is right. */
  acceptMissing(nodes: number): void;
  /** Takes in a detail read. `contradicts`: its usage is the first to contradict the declared scale. */
  recordDetail(detail: NodeDetail, at: MonotonicMs, now: EpochMs): "taken" | "contradicts";
  has(id: NodeId): boolean;
  count(): number;
  /** An immutable copy of now; columns that did not change are shared with the copy before. */
  currentFleet(): Fleet;
  /**
   * The node whose detail is to be read now, where a round of them is planned to take `roundMs`; its turn is over then.
   * Null: no nodes.
   */
  takeNextDetail(now: MonotonicMs, roundMs: DurationMs): DetailPick | null;
  /** A node from anywhere in the fleet, to find out by its detail whether the service answers. Null: no nodes. */
  takeProbe(now: MonotonicMs): DetailPick | null;
  /** The node's detail could not be read, and others could. */
  recordDetailFailure(id: NodeId): void;
  /** Nodes whose detail could not be read twice or more in a row, while others could. */
  failingDetails(): number;
  /** From when on {@link takeDetail} gives a node before its turn; Infinity: not before something else happens. */
  suspectAt(): MonotonicMs;
  /** All nodes whose details policies wait for, and from when on each of them is wanted. */
  setDetailDeadlines(waits: ReadonlyMap<NodeId, MonotonicMs>): void;
  /** The lines that policies draw through usages, in place of those before. */
  setThresholds(thresholds: readonly Threshold[]): void;
  /** Whether there are nodes whose detail was never tried. */
  hasUnreadNodes(): boolean;
  /** Whether the detail of every node has been read, and none of them fails now. */
  hasDetail(): boolean;
  /** A scale newly declared (a reload): usage read under the old one is forgotten. */
  declareScale(scale: UsageScale): void;
}

/** Whose detail is read, and why before its turn; null: it is its turn. */
export interface DetailPick {
  readonly id: NodeId;
  readonly cause: SuspectCause | null;
}

/** How a walk ended. */
export interface WalkSummary {
  /** `exact`: every record is accounted for. `inexact`: the list was read to its end. `cut`: it was not. */
  readonly end: "exact" | "inexact" | "cut";
  /** Records that the list counts. */
  readonly total: number;
  /** Distinct records that the walk has seen, unreadable ones included. */
  readonly seen: number;
  /** Records that could not be read, since they have no id: each may be of one of the nodes not shown. */
  readonly rejected: number;
  /** Share of the total that a complete walk may miss. */
  readonly maxMissing: Share;
}

/** A node that the list hides, and whose last_seen has not moved for so long, is gone though its detail is still answered. */
const UNLISTED_MS_MAX: DurationMs = DAY_MS;
/** Walks in a row that miss no more than usual after which an accepted number of missing nodes is no longer accepted. */
const WALKS_TO_RECOVER = 10;

/** Numbers of a detail that are kept as they came; usages become ratios first. */
const plainDetailNumbers = DETAIL_NUMBER_NAMES.filter((name) => !(USAGES as readonly DetailNumber[]).includes(name));

/** Creates an empty inventory; usage is taken by `initialScale`, and `onFolded` learns of nodes whose place is one too many. */
export function createInventory(initialScale: UsageScale, onFolded: OnLabelsFolded = () => {}): Inventory {
  const columns = createColumns();
  const locations = createLocationTable(onFolded);
  const slots = new Map<NodeId, number>();
  const freeSlots: number[] = [];
  const priority = createDetailPriority();
  const detailed = new Set<NodeId>();
  const absences = createAbsenceTracker();
  /** By node that the list hides: its last_seen at a lookup, and when that was first seen. */
  const unchanged = new Map<NodeId, { readonly lastSeenMs: number; readonly since: MonotonicMs }>();
  let lastDetailAt: MonotonicMs | null = null;
  let acceptedMissing = 0;
  let recoveredWalks = 0;
  let settledAt: MonotonicMs | null = null;
  let walkedAt: MonotonicMs | null = null;
  let lastWalk: WalkResult | null = null;
  const usageScale = createUsageScaleCheck(initialScale);

  function slotOf(id: NodeId): number {
    const known = slots.get(id);
    if (known !== undefined) return known;
    const slot = freeSlots.pop() ?? columns.grow();
    slots.set(id, slot);
    priority.addNode(slot);
    columns.clear(slot, id);
    absences.reset(slot);
    return slot;
  }

  /** Whether a node that the list hides has not been heard of for so long that it is one which the service merely remembers. */
  function isUnlistedTooLong(id: NodeId, slot: number, at: MonotonicMs): boolean {
    const lastSeenMs = columns.numbers.get("lastSeenMs", slot);
    const before = unchanged.get(id);
    if (before === undefined || !Object.is(before.lastSeenMs, lastSeenMs)) unchanged.set(id, { lastSeenMs, since: at });
    return at - (unchanged.get(id)?.since ?? at) >= UNLISTED_MS_MAX;
  }

  function removeNode(id: NodeId, slot: number): void {
    slots.delete(id);
    priority.removeNode(slot);
    detailed.delete(id);
    unchanged.delete(id);
    columns.clear(slot, "");
    freeSlots.push(slot);
  }

  function writeRecord(slot: number, record: NodeRecord, at: MonotonicMs): void {
    const { texts, numbers } = columns;
    texts.set("names", slot, record.name ?? "");
    texts.set("ipAddresses", slot, record.ipAddress ?? "");
    texts.set("versions", slot, record.version ?? "");
    columns.setLocation(slot, locations.index(record.country ?? "", record.region ?? ""));
    columns.setStatus(slot, NODE_STATUSES.indexOf(record.status));
    for (const name of LISTED_NUMBER_NAMES) numbers.set(name, slot, record[name]);
    numbers.set("listedAt", slot, at);
  }

  /** Writes down the usages of a detail and returns them as ratios; NaN: missing, or of a scale that is not known. */
  function writeUsage(slot: number, detail: NodeDetail): UsageReading {
    const wasKnown = usageScale.isKnown();
    const ratios = usageScale.normalize(detail);
    if (wasKnown && !usageScale.isKnown()) clearUsage();
    for (const usage of USAGES) columns.numbers.set(usage, slot, ratios[usage]);
    return ratios;
  }

  const toDetailPick = (pick: DetailChoice | null): DetailPick | null =>
    pick === null ? null : { id: columns.texts.get("ids", pick.slot), cause: pick.cause };

  function clearUsage(): void {
    columns.forgetUsage();
    priority.forgetUsage();
  }

  return {
    recordListed(record, at) {
      const slot = slotOf(record.id);
      writeRecord(slot, record, at);
      const isNew = absences.markShown(slot);
      // A page that drifted shows a node again a moment later: that is no look of its own.
      if (isNew) priority.recordListed(slot, record, at);
      return isNew;
    },
    nodesToLookUp: (max) =>
      absences
        .dueForLookup(slots.values())
        .slice(0, max)
        .map((slot) => columns.texts.get("ids", slot)),
    recordLookup(id, found, at) {
      const slot = slots.get(id);
      if (slot === undefined || absences.isShown(slot)) return;
      const isGone = found === "gone" || (found === "alive" && isUnlistedTooLong(id, slot, at));
      absences.recordLookup(slot, isGone ? "gone" : found);
      if (isGone) removeNode(id, slot);
    },
    lastDetailAt: () => lastDetailAt,
    anyListed: () => {
      for (const [id, slot] of slots) if (absences.isShown(slot)) return id;
      return null;
    },
    endWalk({ end, total, seen, rejected, maxMissing }, at) {
      const known = [...slots.values()];
      const readRecords = known.filter(absences.isShown).length;
      const hidden = known.filter((slot) => !absences.isShown(slot) && absences.isHidden(slot)).length;
      // What a lookup has found is not missing, and each record without an id may be one of the nodes that were not shown.
      const counts = { total, seen };
      const unlisted = known.length - readRecords - hidden - rejected;
      const missing = Math.max(missingRecords(counts, hidden), -missingRecords(counts), unlisted, 0);
      const constantMissing = allowedMissing(counts, maxMissing);
      const allowed = Math.max(acceptedMissing, constantMissing);
      const complete = end !== "cut" && missing <= allowed;
      const isExact = end === "exact" && rejected === 0 && Math.abs(missingRecords(counts)) <= allowed;
      for (const slot of absences.endWalk(known, isExact ? "exact" : complete ? "inexact" : "blind")) {
        removeNode(columns.texts.get("ids", slot), slot);
      }
      columns.renumberLocations(locations.compact(columns.occupiedLocations()));
      if (complete) settledAt = at;
      if (end !== "cut" || seen > 0) walkedAt = at;
      // What was accepted once is not accepted of a list that has recovered since.
      recoveredWalks = complete && missing <= constantMissing ? recoveredWalks + 1 : 0;
      if (recoveredWalks >= WALKS_TO_RECOVER) acceptedMissing = 0;
      const completeWalks = (lastWalk?.completeWalks ?? 0) + (complete ? 1 : 0);
      lastWalk = {
        complete,
        completeWalks,
        seenNodes: readRecords,
        missing,
        total,
        isAborted: end === "cut",
        rejected,
        at,
      };
      return lastWalk;
    },
    acceptMissing(nodes) {
      acceptedMissing = nodes;
      recoveredWalks = 0;
    },
    recordDetail(detail, at, now) {
      const slot = slots.get(detail.id);
      if (slot === undefined) return "taken";
      writeRecord(slot, detail, at);
      lastDetailAt = at;
      detailed.add(detail.id);
      for (const name of plainDetailNumbers) columns.numbers.set(name, slot, detail[name]);
      columns.numbers.set("detailedAt", slot, at);
      columns.numbers.set("detailedAtEpochMs", slot, now);
      const wasKnown = usageScale.isKnown();
      priority.recordRead(slot, writeUsage(slot, detail), at);
      return wasKnown && !usageScale.isKnown() ? "contradicts" : "taken";
    },
    has: (id) => slots.has(id),
    count: () => slots.size,
    hasUnreadNodes: priority.hasUnreadNodes,
    suspectAt: priority.suspectAt,
    hasDetail: () => detailed.size === slots.size && priority.failingNodes() === 0,
    failingDetails: priority.failingNodes,
    recordDetailFailure(id) {
      const slot = slots.get(id);
      if (slot !== undefined) priority.recordFailure(slot);
    },
    currentFleet: () =>
      columns.copy({
        count: slots.size,
        locations: locations.list(),
        usageKnown: usageScale.isKnown(),
        settledAt,
        walkedAt,
        lastWalk,
      }),
    takeNextDetail: (now, roundMs) => toDetailPick(priority.takeNext(now, roundMs)),
    takeProbe: (now) => toDetailPick(priority.takeProbe(now)),
    setDetailDeadlines(waits) {
      const bySlot = new Map<number, MonotonicMs>();
      for (const [id, due] of waits) {
        const slot = slots.get(id);
        if (slot !== undefined) bySlot.set(slot, due);
      }
      priority.setPolicyDeadlines(bySlot);
    },
    setThresholds: priority.setThresholds,
    declareScale(declared) {
      if (usageScale.declare(declared)) clearUsage();
    },
  };
}
