import { NODE_STATUSES } from "../../model/node.ts";
import type { Usage } from "../../model/policy/policy.ts";
import type { Dated, Fleet } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";

/** Node counts of a region or the fleet. */
export interface NodeCounts {
  readonly nodes: number;
  /** Online nodes. Nodes of unknown status do not count. */
  readonly online: number;
}

/** Node counts and medians of a fleet, as a whole (`region: null`) and by region. */
export interface FleetAggregates {
  /**
   * Returns node counts as of the end of the last complete walk. Null if no walk was complete yet, or the region has no
   * node.
   */
  counts(region: string | null): Dated<NodeCounts> | null;
  /**
   * Returns the median of the values observed since `freshFrom`, with the time of the oldest of them. Null if fewer
   * than half of the nodes have such a value, no usage scale is declared, or no walk was complete yet.
   */
  median(region: string | null, column: Usage, freshFrom: MonotonicMs): Dated<number> | null;
}

/** Share of the nodes that must have a fresh value. A median of fewer is not representative. */
const FRESH_SHARE_MIN = 0.5;
/**
 * Maximum number of cached sets of medians of one usage. They are for policies with different max_age, over a few
 * evaluations of one snapshot.
 */
const MEDIAN_SETS_MAX = 32;

const ONLINE = NODE_STATUSES.indexOf("online");

const aggregatesByFleet = new WeakMap<Fleet, FleetAggregates>();

/** Returns the aggregates of a fleet. They are computed on first use and cached with the fleet. */
export function fleetAggregates(fleet: Fleet): FleetAggregates {
  const known = aggregatesByFleet.get(fleet);
  if (known !== undefined) return known;
  const created = createAggregates(fleet);
  aggregatesByFleet.set(fleet, created);
  return created;
}

type ByRegion<T> = ReadonlyMap<string | null, T>;

/** Medians that are valid for every `freshFrom` that selects the same values. */
interface MedianSet {
  /** When the newest value that is not selected was observed. */
  readonly freshAfter: MonotonicMs;
  /** When the oldest selected value was observed. */
  readonly freshUpTo: MonotonicMs;
  readonly byRegion: ByRegion<Dated<number>>;
}

function createAggregates(fleet: Fleet): FleetAggregates {
  let countsByRegion: ByRegion<NodeCounts> | null = null;
  const medianSets: Readonly<Record<Usage, MedianSet[]>> = { cpuUsage: [], memoryUsage: [], diskUsage: [] };
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
      let found = medians.find(({ freshAfter, freshUpTo }) => freshFrom > freshAfter && freshFrom <= freshUpTo);
      if (found === undefined) {
        if (medians.length >= MEDIAN_SETS_MAX) medians.length = 0;
        found = findMedians(fleet, column, freshFrom, (group) => countsOf(group)?.nodes ?? 0);
        medians.push(found);
      }
      return found.byRegion.get(region) ?? null;
    },
  };
}

/** Returns the region of the node in a slot, which is "" if its record names none, or null if the slot is empty. */
function regionOf(fleet: Fleet, slot: number): string | null {
  return fleet.ids[slot] === "" ? null : (fleet.locations[fleet.locationIndex[slot]!]?.region ?? "");
}

/** Returns the keys under which a node counts. A node without a region counts only for the fleet. */
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
  column: Usage,
  freshFrom: MonotonicMs,
  nodeCountOf: (group: string | null) => number,
): MedianSet {
  const samplesByGroup = new Map<string | null, { values: number[]; at: MonotonicMs }>();
  let freshAfter = Number.NEGATIVE_INFINITY;
  for (let slot = 0; slot < fleet.slots; slot++) {
    const [value, at] = [fleet[column][slot]!, fleet.detailedAt[slot]!];
    const region = regionOf(fleet, slot);
    if (region === null || !Number.isFinite(value) || !Number.isFinite(at)) continue;
    if (!(at >= freshFrom)) {
      freshAfter = Math.max(freshAfter, at);
      continue;
    }
    for (const group of groupsOf(region)) {
      const samples = samplesByGroup.get(group) ?? { values: [], at };
      samples.values.push(value);
      samples.at = Math.min(samples.at, at);
      samplesByGroup.set(group, samples);
    }
  }
  const byRegion = new Map<string | null, Dated<number>>();
  for (const [group, { values, at }] of samplesByGroup) {
    if (values.length < FRESH_SHARE_MIN * nodeCountOf(group)) continue;
    byRegion.set(group, { value: median(values), at });
  }
  return { freshAfter, freshUpTo: samplesByGroup.get(null)?.at ?? Number.POSITIVE_INFINITY, byRegion };
}

/** Returns the middle value or, for an even number of values, the mean of the two middle ones. */
function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
