import { withRoom } from "../base/column.ts";
import type { DurationMs } from "../base/duration.ts";
import { type Cause, createDetailPriority } from "../budget/priority.ts";
import type { UsageReading } from "../budget/trend.ts";
import type { OnFolded } from "../metrics/label-caps.ts";
import { NODE_STATUSES, type NodeDetail, type NodeId, type NodeRecord } from "../model/node.ts";
import type { Fleet, WalkEnd } from "../model/snapshot.ts";
import { type Threshold, USAGES } from "../model/threshold.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { createColumns } from "./columns.ts";
import { createPlaces } from "./places.ts";

/** Scale in which the service writes usage: the spec doesn't say. `null`: nobody declared it. */
export type UsageScale = "ratio" | "percent" | null;

/** The fleet as the walks and detail reads make it; hands out immutable copies. */
export interface Inventory {
  /** Takes in a list record. True if this walk had not met the node before. */
  list(record: NodeRecord, at: MonotonicMs): boolean;
  /** Marks a node as met whose record could not be read: its last record stands. True if not met before. */
  meet(id: NodeId): boolean;
  /** Ends a walk. Nodes that enough complete walks in a row did not meet are gone. */
  endWalk(walk: EndedWalk, at: MonotonicMs): void;
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
  /** From when on {@link takeDetail} gives a node before its turn; Infinity: not before something else happens. */
  suspectAt(): MonotonicMs;
  /** All nodes whose details policies wait for, and from when on each of them is wanted. */
  awaitDetails(waits: ReadonlyMap<NodeId, MonotonicMs>): void;
  /** The lines that policies draw through usages, in place of those before. */
  setThresholds(thresholds: readonly Threshold[]): void;
  /** Whether there are nodes whose detail was never tried. */
  hasUntried(): boolean;
  /** Whether the detail of every node has been read. */
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
  readonly complete: boolean;
  /** Records that name no node: each may be one of those not met. */
  readonly nameless: number;
  /** Records that could not be read, the nameless among them. */
  readonly rejected: number;
}

/**
 * A node is gone when two complete walks in a row did not meet it: one alone may have drifted past it. A walk with
 * nameless records is worth a fifth of one: it can't say who is missing, and a list that is broken for good must not
 * keep the vanished forever.
 */
const ABSENCE_MAX = 10;
const ABSENCE_OF_WALK = 5;
const ABSENCE_OF_NAMELESS_WALK = 1;
/** Declared as a ratio, a value above this is none; as a percentage, above a hundred times this. */
const USAGE_RATIO_MAX = 1.5;
const NO_USAGE: UsageReading = {
  cpuUsage: Number.NaN,
  memoryUsage: Number.NaN,
  diskUsage: Number.NaN,
};

/** An empty inventory; usage is taken by `initialScale`, and `onFolded` learns of nodes whose place is one too many. */
export function createInventory(initialScale: UsageScale, onFolded: OnFolded = () => {}): Inventory {
  const columns = createColumns();
  const places = createPlaces(onFolded);
  const slots = new Map<NodeId, number>();
  const free: number[] = [];
  const priority = createDetailPriority();
  const detailed = new Set<NodeId>();
  // Number of the walk that met the node last, and how absent it was since, by complete walks in a row.
  let walk = 1;
  let metIn = new Float64Array(0);
  let absences = new Uint8Array(0);
  let settledAt: MonotonicMs | null = null;
  let lastWalk: WalkEnd | null = null;
  let scale = initialScale;
  let contradicted = false;

  function slotOf(id: NodeId): number {
    const known = slots.get(id);
    if (known !== undefined) return known;
    const slot = free.pop() ?? columns.grow();
    metIn = withRoom(metIn, slot);
    absences = withRoom(absences, slot);
    slots.set(id, slot);
    priority.join(slot);
    columns.clear(slot, id);
    metIn[slot] = 0;
    return slot;
  }

  function meetSlot(slot: number): boolean {
    const isNew = metIn[slot] !== walk;
    metIn[slot] = walk;
    absences[slot] = 0;
    return isNew;
  }

  function forget(id: NodeId, slot: number): void {
    slots.delete(id);
    priority.leave(slot);
    detailed.delete(id);
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
  function takeUsage(slot: number, { cpuUsage, memoryUsage, diskUsage }: NodeDetail): UsageReading {
    const unit = scale === "percent" ? 100 : 1;
    const ratio = (value: number | null): number => (usageKnown() && value !== null ? value / unit : Number.NaN);
    const ratios = { cpuUsage: ratio(cpuUsage), memoryUsage: ratio(memoryUsage), diskUsage: ratio(diskUsage) };
    if (Object.values(ratios).some((value) => value > USAGE_RATIO_MAX)) {
      contradicted = true;
      forgetUsage();
      return NO_USAGE;
    }
    for (const usage of USAGES) columns.numbers.set(usage, slot, ratios[usage]);
    return ratios;
  }

  const usageKnown = (): boolean => scale !== null && !contradicted;

  function forgetUsage(): void {
    columns.forgetUsage();
    priority.forgetUsage();
  }

  return {
    list(record, at) {
      const slot = slotOf(record.id);
      writeList(slot, record, at);
      const isNew = meetSlot(slot);
      // A page that drifted shows a node again a moment later: that is no look of its own.
      if (isNew) priority.list(slot, record, at);
      return isNew;
    },
    meet(id) {
      const slot = slots.get(id);
      // An unreadable record of a node never read counts for the walk, and makes no node.
      return slot === undefined ? true : meetSlot(slot);
    },
    endWalk({ complete, nameless, rejected }, at) {
      let met = 0;
      for (const slot of slots.values()) if (metIn[slot] === walk) met++;
      if (complete) {
        const absence = nameless > 0 ? ABSENCE_OF_NAMELESS_WALK : ABSENCE_OF_WALK;
        for (const [id, slot] of slots) {
          if (metIn[slot] === walk) continue;
          absences[slot]! += absence;
          if (absences[slot]! >= ABSENCE_MAX) forget(id, slot);
        }
        columns.movePlaces(places.compact(columns.occupiedPlaces()));
        settledAt = at;
      }
      const completeWalks = (lastWalk?.completeWalks ?? 0) + (complete ? 1 : 0);
      lastWalk = { complete, completeWalks, met, rejected, at };
      walk++;
    },
    detail(detail, at, now) {
      const slot = slots.get(detail.id);
      if (slot === undefined) return "taken";
      writeList(slot, detail, at);
      detailed.add(detail.id);
      columns.numbers.set("createdAtMs", slot, detail.createdAtMs);
      columns.numbers.set("updatedAtMs", slot, detail.updatedAtMs);
      columns.numbers.set("detailedAt", slot, at);
      columns.numbers.set("detailedAtEpochMs", slot, now);
      const wasContradicted = contradicted;
      priority.read(slot, takeUsage(slot, detail), at);
      return contradicted && !wasContradicted ? "contradicts" : "taken";
    },
    has: (id) => slots.has(id),
    count: () => slots.size,
    hasUntried: priority.hasUntried,
    suspectAt: priority.suspectAt,
    isDetailed: () => detailed.size === slots.size,
    fleet: () =>
      columns.copy({
        count: slots.size,
        places: places.list(),
        usageKnown: usageKnown(),
        settledAt,
        lastWalk,
      }),
    takeDetail(now, roundMs) {
      const pick = priority.take(now, roundMs);
      return pick === null ? null : { id: columns.texts.get("ids", pick.slot), cause: pick.cause };
    },
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
      if (declared === scale) return;
      scale = declared;
      contradicted = false;
      forgetUsage();
    },
  };
}
