import { NODE_STATUSES, type NodeDetail, type NodeId, type NodeRecord } from "../model/node.ts";
import type { Fleet, WalkEnd } from "../model/snapshot.ts";
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
  /** The node whose detail is read next: one never tried, else the one tried longest ago; null: no nodes. */
  nextDetail(): NodeId | null;
  /** Puts a node at the end of the queue of detail reads. */
  tried(id: NodeId): void;
  /** Whether there are nodes whose detail was never tried. */
  hasUntried(): boolean;
  /** Whether the detail of every node has been read. */
  isDetailed(): boolean;
  /** A scale newly declared (a reload): usage read under the old one is forgotten. */
  declareScale(scale: UsageScale): void;
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

/** An empty inventory; usage is taken by `initialScale`. */
export function createInventory(initialScale: UsageScale): Inventory {
  const columns = createColumns();
  const places = createPlaces();
  const slots = new Map<NodeId, number>();
  const free: number[] = [];
  // Two queues, first in, first out: a node that was never tried goes before all that were.
  const untried = new Set<NodeId>();
  const tried = new Set<NodeId>();
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
    if (slot >= metIn.length) {
      metIn = grown(metIn, Float64Array, slot);
      absences = grown(absences, Uint8Array, slot);
    }
    slots.set(id, slot);
    untried.add(id);
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
    untried.delete(id);
    tried.delete(id);
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

  function writeUsage(slot: number, detail: NodeDetail): void {
    const unit = scale === "percent" ? 100 : 1;
    const usage = { cpuUsage: detail.cpuUsage, memoryUsage: detail.memoryUsage, diskUsage: detail.diskUsage };
    for (const [name, value] of Object.entries(usage) as [keyof typeof usage, number | null][]) {
      if (scale !== null && value !== null && value > USAGE_RATIO_MAX * unit) contradicted = true;
      columns.numbers.set(name, slot, value === null ? null : value / unit);
    }
    if (contradicted) columns.forgetUsage();
  }

  return {
    list(record, at) {
      const slot = slotOf(record.id);
      writeList(slot, record, at);
      return meetSlot(slot);
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
      if (scale === null || contradicted) return "taken";
      writeUsage(slot, detail);
      return contradicted ? "contradicts" : "taken";
    },
    has: (id) => slots.has(id),
    count: () => slots.size,
    hasUntried: () => untried.size > 0,
    isDetailed: () => detailed.size === slots.size,
    fleet: () =>
      columns.copy({
        count: slots.size,
        places: places.list(),
        usageKnown: scale !== null && !contradicted,
        settledAt,
        lastWalk,
      }),
    nextDetail() {
      for (const id of untried) return id;
      for (const id of tried) return id;
      return null;
    },
    tried(id) {
      untried.delete(id);
      tried.delete(id);
      if (slots.has(id)) tried.add(id);
    },
    declareScale(declared) {
      if (declared === scale) return;
      scale = declared;
      contradicted = false;
      columns.forgetUsage();
    },
  };
}

type Numbers = Float64Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;

/** Shortest column; columns double from there. */
const SLOTS_MIN = 64;

function grown<T extends Numbers>(column: T, make: new (length: number) => T, slot: number): T {
  const wider = new make(Math.max(SLOTS_MIN, 2 * slot));
  wider.set(column);
  return wider;
}
