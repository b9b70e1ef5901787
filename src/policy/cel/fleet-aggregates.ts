import { oncePerObject } from "../../base/once-per-key.ts";
import { runAtOnce, type Steps } from "../../base/steps.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import type { Usage } from "../../model/policy/policy.ts";
import type { Dated, Fleet } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { occupiedSlots } from "./field-readers.ts";

/** Node counts of a region or the fleet. */
export interface NodeCounts {
  readonly nodes: number;
  /** Online nodes. Nodes of unknown status do not count. */
  readonly online: number;
}

/** Share of the nodes that must have a fresh value. A median of fewer is not representative. */
const FRESH_SHARE_MIN = 0.5;
/**
 * Maximum number of cached sets of medians of one usage. They are for policies with different max_age, over a few
 * evaluations of one snapshot.
 */
const MEDIAN_SETS_MAX = 32;

const ONLINE = NODE_STATUSES.indexOf("online");
const OFFLINE = NODE_STATUSES.indexOf("offline");
const UNKNOWN = NODE_STATUSES.indexOf("unknown");

type ByRegion<T> = ReadonlyMap<string | null, T>;

/** Medians that are valid for every `freshFrom` that selects the same values. */
interface MedianSet {
  /** When the newest value that is not selected was observed. */
  readonly freshAfter: MonotonicMs;
  /** When the oldest selected value was observed. */
  readonly freshUpTo: MonotonicMs;
  /** The medians that were computed: of regions, and of the fleet for null. Null if too few nodes have a selected value. */
  readonly known: ReadonlyMap<string | null, Dated<number> | null>;
  /** Computes one of them. */
  compute(region: string | null): Steps<Dated<number> | null>;
}

/** Node counts and medians of a fleet, as a whole (`region: null`) and by region. */
export type FleetAggregates = ReturnType<typeof fleetAggregates>;

/** Returns the aggregates of a fleet. They are computed on first use and cached with the fleet. */
export const fleetAggregates = oncePerObject((fleet: Fleet) => {
  const medianSets: Readonly<Record<Usage, MedianSet[]>> = { cpuUsage: [], memoryUsage: [], diskUsage: [] };
  const knownSet = (usage: Usage, from: MonotonicMs) =>
    medianSets[usage].find(({ freshAfter, freshUpTo }) => from > freshAfter && from <= freshUpTo);
  function* newSet(usage: Usage, from: MonotonicMs): Steps<MedianSet> {
    const found = yield* findMedians(fleet, usage, from);
    const medians = medianSets[usage];
    if (medians.length >= MEDIAN_SETS_MAX) medians.length = 0;
    medians.push(found);
    return found;
  }

  return {
    /**
     * Returns node counts as of the end of the last complete walk. Null if no walk was complete yet, or the region has no
     * node.
     */
    counts(region: string | null): Dated<NodeCounts> | null {
      const value = countByRegion(fleet).get(region);
      return value === undefined || fleet.settledAt === null ? null : { value, at: fleet.settledAt };
    },
    /**
     * Returns the median of the values observed since `freshFrom`, with the time of the oldest of them. Null if fewer
     * than half of the nodes have such a value, no usage scale is declared, or no walk was complete yet.
     */
    median(region: string | null, column: Usage, freshFrom: MonotonicMs): Dated<number> | null {
      if (!fleet.usageKnown || fleet.settledAt === null) return null;
      const medians = knownSet(column, freshFrom) ?? runAtOnce(newSet(column, freshFrom));
      const known = medians.known.get(region);
      return known === undefined ? runAtOnce(medians.compute(region)) : known;
    },
    /**
     * The steps that compute the median of the fleet, so that `median` takes less time. Together they take tens of
     * milliseconds for a million nodes.
     */
    *prepareMedian(column: Usage, freshFrom: MonotonicMs): Steps<void> {
      if (!fleet.usageKnown || fleet.settledAt === null) return;
      const medians = knownSet(column, freshFrom) ?? (yield* newSet(column, freshFrom));
      if (!medians.known.has(null)) yield* medians.compute(null);
    },
  };
});

/**
 * Returns what the records of a fleet show for each location; a fleet has few locations. Computed once for each fleet.
 * The arrays must not be modified.
 */
export const countRecords = oncePerObject((fleet: Fleet) => {
  const { locationIndex, status, locations } = fleet;
  const nodes = new Uint32Array(locations.length);
  const online = new Uint32Array(locations.length);
  /** Nodes for which {@link isSeenOnline}. */
  const seenOnline = new Uint32Array(locations.length);
  /** 1 for each slot whose node is offline or of unknown status. */
  const isUnhealthy = new Uint8Array(fleet.slots);
  const occupied = occupiedSlots(fleet.ids);
  let [offline, unknown] = [0, 0];
  for (let slot = 0; slot < fleet.slots; slot++) {
    if (occupied[slot] === 0) continue;
    const state = status[slot]!;
    nodes[locationIndex[slot]!]!++;
    if (state === ONLINE) online[locationIndex[slot]!]!++;
    if (isSeenOnline(fleet, slot)) seenOnline[locationIndex[slot]!]!++;
    if (state !== OFFLINE && state !== UNKNOWN) continue;
    isUnhealthy[slot] = 1;
    if (state === OFFLINE) offline++;
    else unknown++;
  }
  return { nodes, online, seenOnline, isUnhealthy, offline, unknown };
});

/** Returns whether a node is online by a record that is not older than the last complete walk, which may have missed it. */
export const isSeenOnline = ({ status, listedAt, settledFrom }: Fleet, slot: number): boolean =>
  status[slot] === ONLINE && (settledFrom === null || listedAt.at(slot) >= settledFrom);

const countByRegion = oncePerObject((fleet: Fleet): ByRegion<NodeCounts> => {
  const { nodes, online } = countRecords(fleet);
  const counts = new Map<string | null, NodeCounts>();
  for (const [location, { region }] of fleet.locations.entries()) {
    if (nodes[location] === 0) continue;
    // A node without a region counts only for the fleet.
    for (const group of region === "" ? [null] : [null, region]) {
      const known = counts.get(group) ?? { nodes: 0, online: 0 };
      counts.set(group, { nodes: known.nodes + nodes[location]!, online: known.online + online[location]! });
    }
  }
  return counts;
});

function* findMedians(fleet: Fleet, column: Usage, freshFrom: MonotonicMs): Steps<MedianSet> {
  const values = fleet[column].toArray();
  yield;
  const detailedAt = fleet.detailedAt.toArray();
  yield;
  const { slots, freshAfter } = yield* freshSlots(occupiedSlots(fleet.ids), values, detailedAt, freshFrom);
  const freshUpTo = oldest(detailedAt, slots);
  yield;
  const known = new Map<string | null, Dated<number> | null>();
  let regions: ReadonlyMap<string, readonly number[]> | null = null;
  function* medianOf(group: string | null, members: ArrayLike<number>): Steps<Dated<number> | null> {
    const { nodes } = countByRegion(fleet).get(group) ?? { nodes: 0 };
    if (members.length === 0 || members.length < FRESH_SHARE_MIN * nodes) return null;
    const at = members === slots ? freshUpTo : oldest(detailedAt, members);
    const selected = valuesAt(values, members);
    yield;
    return { value: yield* median(selected), at };
  }
  return {
    freshAfter,
    freshUpTo,
    known,
    *compute(group) {
      if (group !== null) regions ??= groupByRegion(fleet, slots);
      const computed = yield* medianOf(group, group === null ? slots : (regions!.get(group) ?? []));
      known.set(group, computed);
      return computed;
    },
  };
}

/** Slots that are compared in one step, which takes a fraction of a millisecond. */
const SLOTS_PER_STEP = 65_536;

/** Returns the slots whose value of a usage was observed since `freshFrom`, and when the newest other value was. */
function* freshSlots(occupied: Uint8Array, values: Float64Array, detailedAt: Float64Array, freshFrom: MonotonicMs) {
  const slots = new Uint32Array(values.length);
  let count = 0;
  let freshAfter = Number.NEGATIVE_INFINITY;
  for (let slot = 0; slot < values.length; slot++) {
    if (slot % SLOTS_PER_STEP === 0) yield;
    const at = detailedAt[slot]!;
    if (occupied[slot] === 0 || !Number.isFinite(values[slot]) || !Number.isFinite(at)) continue;
    if (at >= freshFrom) slots[count++] = slot;
    else freshAfter = Math.max(freshAfter, at);
  }
  return { slots: slots.subarray(0, count), freshAfter };
}

/** Returns the values at these slots. `Float64Array.from` takes fifty times as long. */
function valuesAt(column: Float64Array, slots: ArrayLike<number>): Float64Array {
  const values = new Float64Array(slots.length);
  for (let index = 0; index < slots.length; index++) values[index] = column[slots[index]!]!;
  return values;
}

/** Returns when the oldest value of these slots was observed, or Infinity if there are none. */
function oldest(detailedAt: Float64Array, slots: ArrayLike<number>): MonotonicMs {
  let at = Number.POSITIVE_INFINITY;
  for (let index = 0; index < slots.length; index++) at = Math.min(at, detailedAt[slots[index]!]!);
  return at;
}

/** Groups slots by the region of their nodes. Nodes without a region are left out. */
function groupByRegion(
  { locations, locationIndex }: Fleet,
  slots: Uint32Array,
): ReadonlyMap<string, readonly number[]> {
  const groups = new Map<string, number[]>();
  const groupOfLocation = locations.map(({ region }) => {
    const group = groups.get(region) ?? [];
    if (region !== "") groups.set(region, group);
    return group;
  });
  for (const slot of slots) groupOfLocation[locationIndex[slot]!]?.push(slot);
  return groups;
}

/**
 * Returns the middle value or, for an even number of values, the mean of the two middle ones. Reorders the values.
 */
function* median(values: Float64Array): Steps<number> {
  const middle = values.length >> 1;
  const upper = yield* selectInSteps(values, middle);
  if (values.length % 2 === 1) return upper;
  let lower = Number.NEGATIVE_INFINITY;
  // `reduce` takes ten times as long.
  for (let index = 0; index < middle; index++) lower = Math.max(lower, values[index]!);
  return (lower + upper) / 2;
}

/**
 * Returns the value that sorting would put at `index`, and moves smaller ones before it (quickselect). Sorting the
 * values of 100,000 nodes would block the event loop for several milliseconds. The first step, which takes the longest,
 * takes a millisecond for 300,000 values.
 */
export function* selectInSteps(values: Float64Array, index: number): Steps<number> {
  let first = 0;
  let last = values.length - 1;
  while (first < last) {
    const pivot = values[(first + last) >> 1]!;
    let [left, right] = [first, last];
    while (left <= right) {
      while (values[left]! < pivot) left++;
      while (values[right]! > pivot) right--;
      if (left > right) break;
      const swapped = values[left]!;
      values[left++] = values[right]!;
      values[right--] = swapped;
    }
    if (index <= right) last = right;
    else if (index >= left) first = left;
    else break;
    yield;
  }
  return values[index]!;
}
