import { NODE_STATUSES } from "../../model/node.ts";
import type { Dated, Fleet } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";

/** Columns whose median is known. */
export type UsageColumn = "cpuUsage" | "memoryUsage" | "diskUsage";

/** Nodes of a region, or of the fleet. */
export interface Counts {
  readonly nodes: number;
  /** One whose status is not known is not counted as online. */
  readonly online: number;
}

/** What a fleet comes to as a whole and by region; `region: null` is the fleet. */
export interface Aggregates {
  /** Observed when the last complete walk ended. Null: no walk was complete yet, or no node stands there. */
  counts(region: string | null): Dated<Counts> | null;
  /**
   * Middle of the values that are not older than `freshFrom`, as old as the oldest of them. Null: fewer than half of
   * the nodes have one, no usage scale holds, or no walk was complete yet.
   */
  median(region: string | null, column: UsageColumn, freshFrom: MonotonicMs): Dated<number> | null;
}

/** Share of the nodes that must have a fresh value for their median to mean something. */
const KNOWN_SHARE_MIN = 0.5;
/** Sets of medians of one usage kept for one fleet: at the ages of some policies, over a few looks at the same snapshot. */
const MEDIANS_KEPT_MAX = 32;

const ONLINE = NODE_STATUSES.indexOf("online");

const kept = new WeakMap<Fleet, Aggregates>();

/** The aggregates of a fleet: worked out when first asked for, and then kept for as long as the fleet is. */
export function aggregatesOf(fleet: Fleet): Aggregates {
  const known = kept.get(fleet);
  if (known !== undefined) return known;
  const made = createAggregates(fleet);
  kept.set(fleet, made);
  return made;
}

type ByPlace<T> = ReadonlyMap<string | null, T>;

/** The medians over the same values, whatever `freshFrom` it is that picks just these: it lies above `above`, and up to `upTo`. */
interface Medians {
  /** When the youngest value that is too old was observed. */
  readonly above: MonotonicMs;
  /** When the oldest value that is not too old was observed. */
  readonly upTo: MonotonicMs;
  readonly byPlace: ByPlace<Dated<number>>;
}

function createAggregates(fleet: Fleet): Aggregates {
  let counted: ByPlace<Counts> | null = null;
  const made: Readonly<Record<UsageColumn, Medians[]>> = { cpuUsage: [], memoryUsage: [], diskUsage: [] };
  const countsOf = (region: string | null) => {
    counted ??= count(fleet);
    return counted.get(region) ?? null;
  };

  return {
    counts(region) {
      const value = countsOf(region);
      return value === null || fleet.settledAt === null ? null : { value, at: fleet.settledAt };
    },
    median(region, column, freshFrom) {
      if (!fleet.usageKnown || fleet.settledAt === null) return null;
      const medians = made[column];
      let found = medians.find(({ above, upTo }) => freshFrom > above && freshFrom <= upTo);
      if (found === undefined) {
        if (medians.length >= MEDIANS_KEPT_MAX) medians.length = 0;
        found = findMedians(fleet, column, freshFrom, (place) => countsOf(place)?.nodes ?? 0);
        medians.push(found);
      }
      return found.byPlace.get(region) ?? null;
    },
  };
}

/** The region of a slot, "" where its record did not say; null: the slot is empty. */
function regionOf(fleet: Fleet, slot: number): string | null {
  return fleet.ids[slot] === "" ? null : (fleet.places[fleet.place[slot]!]?.region ?? "");
}

/** Nodes whose record names no region count for the fleet alone. */
function places(region: string): readonly (string | null)[] {
  return region === "" ? [null] : [null, region];
}

function count(fleet: Fleet): ByPlace<Counts> {
  const counts = new Map<string | null, { nodes: number; online: number }>();
  for (let slot = 0; slot < fleet.slots; slot++) {
    const region = regionOf(fleet, slot);
    if (region === null) continue;
    for (const place of places(region)) {
      const sum = counts.get(place) ?? { nodes: 0, online: 0 };
      sum.nodes += 1;
      if (fleet.status[slot] === ONLINE) sum.online += 1;
      counts.set(place, sum);
    }
  }
  return counts;
}

function findMedians(
  fleet: Fleet,
  column: UsageColumn,
  freshFrom: MonotonicMs,
  nodesOf: (place: string | null) => number,
): Medians {
  const gathered = new Map<string | null, { values: number[]; at: MonotonicMs }>();
  let above = Number.NEGATIVE_INFINITY;
  for (let slot = 0; slot < fleet.slots; slot++) {
    const [value, at] = [fleet[column][slot]!, fleet.detailedAt[slot]!];
    const region = regionOf(fleet, slot);
    if (region === null || !Number.isFinite(value) || !Number.isFinite(at)) continue;
    if (!(at >= freshFrom)) {
      above = Math.max(above, at);
      continue;
    }
    for (const place of places(region)) {
      const one = gathered.get(place) ?? { values: [], at };
      one.values.push(value);
      one.at = Math.min(one.at, at);
      gathered.set(place, one);
    }
  }
  const byPlace = new Map<string | null, Dated<number>>();
  for (const [place, { values, at }] of gathered) {
    if (values.length < KNOWN_SHARE_MIN * nodesOf(place)) continue;
    byPlace.set(place, { value: median(values), at });
  }
  return { above, upTo: gathered.get(null)?.at ?? Number.POSITIVE_INFINITY, byPlace };
}

/** The middle value; the mean of the two middle ones of an even number. */
function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
