import { DAY_MS, type DurationMs } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import { type Cause, createDetailPriority, type Pick } from "../scheduling/detail-priority.ts";
import type { UsageReading } from "../scheduling/usage-trend.ts";
import type { OnFolded } from "../model/label-caps.ts";
import { NODE_STATUSES, type NodeDetail, type NodeId, type NodeRecord } from "../model/node.ts";
import type { Fleet, WalkEnd } from "../model/snapshot.ts";
import { type Threshold, USAGES } from "../model/policy/threshold.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { createColumns } from "./node-columns.ts";
import { createListing, type Lookup } from "./absence.ts";
import { createPlaces } from "./locations.ts";
import { createScaleCheck, type UsageScale } from "./usage-scale.ts";

/** The fleet as the walks and detail reads make it; hands out immutable copies. */
export interface Inventory {
  /** Takes in a list record. True if this walk had not shown the node before. */
  list(record: NodeRecord, at: MonotonicMs): boolean;
  /** At most `max` nodes that the walk under way has not shown and that are due to be looked up by id, longest absent first. */
  unlisted(max: number): readonly NodeId[];
  /** Takes in how the lookup of a node that the walk under way has not shown ended. `gone`: there is no such node (404). */
  lookedUp(id: NodeId, found: Lookup, at: MonotonicMs): void;
  /** When a detail was last read; null: never. */
  lastDetailAt(): MonotonicMs | null;
  /** A node that the walk under way has shown; null: there is none. */
  anyListed(): NodeId | null;
  /** Ends a walk and returns what it came to. Nodes that enough walks in a row did not show are gone. */
  endWalk(walk: EndedWalk, at: MonotonicMs): WalkEnd;
  /** Accepts that walks miss so many nodes: an operator says that this is right. */
  acceptMissing(nodes: number): void;
  /** Takes in a detail read. `contradicts`: its usage is the first to contradict the declared scale. */
  detail(detail: NodeDetail, at: MonotonicMs, now: EpochMs): "taken" | "contradicts";
  has(id: NodeId): boolean;
  count(): number;
  /** An immutable copy of now; columns that did not change are shared with the copy before. */
  fleet(): Fleet;
  /**
   * The node whose detail is to be read now, where a round of them is planned to take `roundMs`; its turn is over then.
   * Null: no nodes.
   */
  takeDetail(now: MonotonicMs, roundMs: DurationMs): DetailTurn | null;
  /** A node from anywhere in the fleet, to find out by its detail whether the service answers. Null: no nodes. */
  takeProbe(now: MonotonicMs): DetailTurn | null;
  /** The node's detail could not be read, and others could. */
  detailFailed(id: NodeId): void;
  /** Nodes whose detail could not be read twice or more in a row, while others could. */
  failingDetails(): number;
  /** From when on {@link takeDetail} gives a node before its turn; Infinity: not before something else happens. */
  suspectAt(): MonotonicMs;
  /** All nodes whose details policies wait for, and from when on each of them is wanted. */
  awaitDetails(waits: ReadonlyMap<NodeId, MonotonicMs>): void;
  /** The lines that policies draw through usages, in place of those before. */
  setThresholds(thresholds: readonly Threshold[]): void;
  /** Whether there are nodes whose detail was never tried. */
  hasUntried(): boolean;
  /** Whether the detail of every node has been read, and none of them fails now. */
  isDetailed(): boolean;
  /** A scale newly declared (a reload): usage read under the old one is forgotten. */
  declareScale(scale: UsageScale): void;
}

/** Whose detail is read, and why before its turn; null: it is its turn. */
export interface DetailTurn {
  readonly id: NodeId;
  readonly cause: Cause | null;
}

/** How a walk ended. */
export interface EndedWalk {
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
const HIDDEN_MS_MAX: DurationMs = DAY_MS;
/** Walks in a row that miss no more than usual after which an accepted number of missing nodes is no longer accepted. */
const RECOVERED_WALKS = 10;

/** An empty inventory; usage is taken by `initialScale`, and `onFolded` learns of nodes whose place is one too many. */
export function createInventory(initialScale: UsageScale, onFolded: OnFolded = () => {}): Inventory {
  const columns = createColumns();
  const places = createPlaces(onFolded);
  const slots = new Map<NodeId, number>();
  const free: number[] = [];
  const priority = createDetailPriority();
  const detailed = new Set<NodeId>();
  const listing = createListing();
  /** By node that the list hides: its last_seen at a lookup, and when that was first seen. */
  const unchanged = new Map<NodeId, { readonly lastSeenMs: number; readonly since: MonotonicMs }>();
  let lastDetailAt: MonotonicMs | null = null;
  let acceptedMissing = 0;
  let recoveredWalks = 0;
  let settledAt: MonotonicMs | null = null;
  let walkedAt: MonotonicMs | null = null;
  let lastWalk: WalkEnd | null = null;
  const scale = createScaleCheck(initialScale);

  function slotOf(id: NodeId): number {
    const known = slots.get(id);
    if (known !== undefined) return known;
    const slot = free.pop() ?? columns.grow();
    slots.set(id, slot);
    priority.join(slot);
    columns.clear(slot, id);
    listing.join(slot);
    return slot;
  }

  /** Whether a node that the list hides has not been heard of for so long that it is one which the service merely remembers. */
  function isAbandoned(id: NodeId, slot: number, at: MonotonicMs): boolean {
    const lastSeenMs = columns.numbers.get("lastSeenMs", slot);
    const before = unchanged.get(id);
    if (before === undefined || !Object.is(before.lastSeenMs, lastSeenMs)) unchanged.set(id, { lastSeenMs, since: at });
    return at - (unchanged.get(id)?.since ?? at) >= HIDDEN_MS_MAX;
  }

  function forget(id: NodeId, slot: number): void {
    slots.delete(id);
    priority.leave(slot);
    detailed.delete(id);
    unchanged.delete(id);
    columns.clear(slot, "");
    free.push(slot);
  }

  function writeList(slot: number, record: NodeRecord, at: MonotonicMs): void {
    const { texts, numbers } = columns;
    texts.set("names", slot, record.name ?? "");
    texts.set("ipAddresses", slot, record.ipAddress ?? "");
    texts.set("versions", slot, record.version ?? "");
    columns.setPlace(slot, places.index(record.country ?? "", record.region ?? ""));
    columns.setStatus(slot, NODE_STATUSES.indexOf(record.status));
    numbers.set("lastSeenMs", slot, record.lastSeenMs);
    numbers.set("uptimeHours", slot, record.uptimeHours);
    numbers.set("activeSessions", slot, record.activeSessions);
    numbers.set("bandwidthGb", slot, record.bandwidthGb);
    numbers.set("listedAt", slot, at);
  }

  /** Writes down the usages of a detail and returns them as ratios; NaN: missing, or of a scale that is not known. */
  function takeUsage(slot: number, detail: NodeDetail): UsageReading {
    const wasKnown = scale.isKnown();
    const ratios = scale.read(detail);
    if (wasKnown && !scale.isKnown()) forgetUsage();
    for (const usage of USAGES) columns.numbers.set(usage, slot, ratios[usage]);
    return ratios;
  }

  const turnOf = (pick: Pick | null): DetailTurn | null =>
    pick === null ? null : { id: columns.texts.get("ids", pick.slot), cause: pick.cause };

  function forgetUsage(): void {
    columns.forgetUsage();
    priority.forgetUsage();
  }

  return {
    list(record, at) {
      const slot = slotOf(record.id);
      writeList(slot, record, at);
      const isNew = listing.show(slot);
      // A page that drifted shows a node again a moment later: that is no look of its own.
      if (isNew) priority.list(slot, record, at);
      return isNew;
    },
    unlisted: (max) =>
      listing
        .due(slots.values())
        .slice(0, max)
        .map((slot) => columns.texts.get("ids", slot)),
    lookedUp(id, found, at) {
      const slot = slots.get(id);
      if (slot === undefined || listing.isShown(slot)) return;
      const isGone = found === "gone" || (found === "alive" && isAbandoned(id, slot, at));
      listing.lookedUp(slot, isGone ? "gone" : found);
      if (isGone) forget(id, slot);
    },
    lastDetailAt: () => lastDetailAt,
    anyListed: () => {
      for (const [id, slot] of slots) if (listing.isShown(slot)) return id;
      return null;
    },
    endWalk({ end, total, seen, rejected, maxMissing }, at) {
      const known = [...slots.values()];
      const met = known.filter(listing.isShown).length;
      const hidden = known.filter((slot) => !listing.isShown(slot) && listing.isHidden(slot)).length;
      // What a lookup has found is not missing, and each record without an id may be one of the nodes that were not shown.
      const missing = Math.max(total - seen - hidden, seen - total, known.length - met - hidden - rejected, 0);
      const usual = missingMax(Math.max(total, seen), maxMissing);
      const complete = end !== "cut" && missing <= Math.max(acceptedMissing, usual);
      const isExact = end === "exact" && rejected === 0 && Math.abs(total - seen) <= Math.max(acceptedMissing, usual);
      for (const slot of listing.end(known, isExact ? "exact" : complete ? "inexact" : "blind")) {
        forget(columns.texts.get("ids", slot), slot);
      }
      columns.movePlaces(places.compact(columns.occupiedPlaces()));
      if (complete) settledAt = at;
      if (end !== "cut" || seen > 0) walkedAt = at;
      // What was accepted once is not accepted of a list that has recovered since.
      recoveredWalks = complete && missing <= usual ? recoveredWalks + 1 : 0;
      if (recoveredWalks >= RECOVERED_WALKS) acceptedMissing = 0;
      const completeWalks = (lastWalk?.completeWalks ?? 0) + (complete ? 1 : 0);
      lastWalk = { complete, completeWalks, met, missing, total, isCut: end === "cut", rejected, at };
      return lastWalk;
    },
    acceptMissing(nodes) {
      acceptedMissing = nodes;
      recoveredWalks = 0;
    },
    detail(detail, at, now) {
      const slot = slots.get(detail.id);
      if (slot === undefined) return "taken";
      writeList(slot, detail, at);
      lastDetailAt = at;
      detailed.add(detail.id);
      columns.numbers.set("createdAtMs", slot, detail.createdAtMs);
      columns.numbers.set("updatedAtMs", slot, detail.updatedAtMs);
      columns.numbers.set("detailedAt", slot, at);
      columns.numbers.set("detailedAtEpochMs", slot, now);
      const wasKnown = scale.isKnown();
      priority.read(slot, takeUsage(slot, detail), at);
      return wasKnown && !scale.isKnown() ? "contradicts" : "taken";
    },
    has: (id) => slots.has(id),
    count: () => slots.size,
    hasUntried: priority.hasUntried,
    suspectAt: priority.suspectAt,
    isDetailed: () => detailed.size === slots.size && priority.failing() === 0,
    failingDetails: priority.failing,
    detailFailed(id) {
      const slot = slots.get(id);
      if (slot !== undefined) priority.failed(slot);
    },
    fleet: () =>
      columns.copy({
        count: slots.size,
        places: places.list(),
        usageKnown: scale.isKnown(),
        settledAt,
        walkedAt,
        lastWalk,
      }),
    takeDetail: (now, roundMs) => turnOf(priority.take(now, roundMs)),
    takeProbe: (now) => turnOf(priority.takeProbe(now)),
    awaitDetails(waits) {
      const bySlot = new Map<number, MonotonicMs>();
      for (const [id, due] of waits) {
        const slot = slots.get(id);
        if (slot !== undefined) bySlot.set(slot, due);
      }
      priority.setWaits(bySlot);
    },
    setThresholds: priority.setThresholds,
    declareScale(declared) {
      if (scale.declare(declared)) forgetUsage();
    },
  };
}

/** Nodes out of `total` that a walk may miss: a share above 0 always allows for one. */
const missingMax = (total: number, share: Share): number => (share === 0 ? 0 : Math.max(1, Math.floor(total * share)));
