import { NODE_STATUSES } from "../../model/node.ts";
import type { Dated, Fleet } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";

/** Columns whose median is known. */
export type UsageColumn = "cpuUsage" | "memoryUsage" | "diskUsage";

/** Nodes of a region, or of the fleet. */
export interface NodeCounts {
  readonly nodes: number;
  /** One whose status is not known is not counted as online. */
  readonly online: number;
}

/** What a fleet comes to as a whole and by region; `region: null` is the fleet. */
export interface FleetAggregates {
  /** Observed when the last complete walk ended. Null: no walk was complete yet, or no node stands there. */
  counts(region: string | null): Dated<NodeCounts> | null;
  /**
   * Middle of the values that are not older than `freshFrom`, as old as the oldest of them. Null: fewer than half of
   * the nodes have one, no usage scale holds, or no walk was complete yet.
   */
  median(region: string | null, column: UsageColumn, freshFrom: MonotonicMs): Dated<number> | null;
}

/** Share of the nodes that must have a fresh value for their median to mean something. */
const FRESH_SHARE_MIN = 0.5;
/** Sets of medians of one usage kept for one fleet: at the ages of some policies, over a few looks at the same snapshot. */
const MEDIAN_SETS_MAX = 32;

const ONLINE = NODE_STATUSES.indexOf("online");

const aggregatesByFleet = new WeakMap<Fleet, FleetAggregates>();

/** The aggregates of a fleet: worked out when first asked for, and then kept for as long as the fleet is. */
export function fleetAggregates(fleet: Fleet): FleetAggregates {
  const known = aggregatesByFleet.get(fleet);
  if (known !== undefined) return known;
  const created = createAggregates(fleet);
  aggregatesByFleet.set(fleet, created);
  return created;
}

type ByRegion<T> = ReadonlyMap<string | null, T>;

/** The medians over the same values, whatever `freshFrom` it is that picks just these: it lies above `above`, and up to `upTo`. */
interface MedianSet {
  /** When the youngest value that is too old was observed. */
  readonly freshAfter: MonotonicMs;
  /** When the oldest value that is not too old was observed. */
  readonly freshUpTo: MonotonicMs;
  readonly byRegion: ByRegion<Dated<number>>;
}

function createAggregates(fleet: Fleet): FleetAggregates {
  let countsByRegion: ByRegion<NodeCounts> | null = null;
  const medianSets: Readonly<Record<UsageColumn, MedianSet[]>> = { cpuUsage: [], memoryUsage: [], diskUsage: [] };
  const countsOf = (region: string | null) => {
    countsByRegion ??= countByRegion(fleet);
    return countsByRegion.get(region) ?? null;
  };

  return {
    counts(region) {
      const value = countsOf(region);
      return value === null || fleet.settledAt === null ? null : { value, at: fleet.settledAt };
    },
    median(region, column, freshFrom) {
      if (!fleet.usageKnown || fleet.settledAt === null) return null;
      const medians = medianSets[column];
      let found = medians.find(({ freshAfter: above, freshUpTo: upTo }) => freshFrom > above && freshFrom <= upTo);
      if (found === undefined) {
        if (medians.length >= MEDIAN_SETS_MAX) medians.length = 0;
        found = findMedians(fleet, column, freshFrom, (group) => countsOf(group)?.nodes ?? 0);
        medians.push(found);
      }
      return found.byRegion.get(region) ?? null;
    },
  };
}

/** The region of a slot, "" where its record did not say; null: the slot is empty. */
function regionOf(fleet: Fleet, slot: number): string | null {
  return fleet.ids[slot] === "" ? null : (fleet.locations[fleet.locationIndex[slot]!]?.region ?? "");
}

/** Nodes whose record names no region count for the fleet alone. */
function groupsOf(region: string): readonly (string | null)[] {
  return region === "" ? [null] : [null, region];
}

function countByRegion(fleet: Fleet): ByRegion<NodeCounts> {
  const counts = new Map<string | null, { nodes: number; online: number }>();
  for (let slot = 0; slot < fleet.slots; slot++) {
    const region = regionOf(fleet, slot);
    if (region === null) continue;
    for (const group of groupsOf(region)) {
      const sum = counts.get(group) ?? { nodes: 0, online: 0 };
      sum.nodes += 1;
      if (fleet.status[slot] === ONLINE) sum.online += 1;
      counts.set(group, sum);
    }
  }
  return counts;
}

function findMedians(
  fleet: Fleet,
  column: UsageColumn,
  freshFrom: MonotonicMs,
  nodeCountOf: (group: string | null) => number,
): MedianSet {
  const samplesByGroup = new Map<string | null, { values: number[]; at: MonotonicMs }>();
  let above = Number.NEGATIVE_INFINITY;
  for (let slot = 0; slot < fleet.slots; slot++) {
    const [value, at] = [fleet[column][slot]!, fleet.detailedAt[slot]!];
    const region = regionOf(fleet, slot);
    if (region === null || !Number.isFinite(value) || !Number.isFinite(at)) continue;
    if (!(at >= freshFrom)) {
      above = Math.max(above, at);
      continue;
    }
    for (const group of groupsOf(region)) {
      const samples = samplesByGroup.get(group) ?? { values: [], at };
      samples.values.push(value);
      samples.at = Math.min(samples.at, at);
      samplesByGroup.set(group, samples);
    }
  }
  const byPlace = new Map<string | null, Dated<number>>();
  for (const [group, { values, at }] of samplesByGroup) {
    if (values.length < FRESH_SHARE_MIN * nodeCountOf(group)) continue;
    byPlace.set(group, { value: median(values), at });
  }
  return { freshAfter: above, freshUpTo: samplesByGroup.get(null)?.at ?? Number.POSITIVE_INFINITY, byRegion: byPlace };
}

/** The middle value; the mean of the two middle ones of an even number. */
function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
