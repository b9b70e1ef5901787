import type { DurationMs } from "../../src/base/duration.ts";
import type { EpochMs } from "../../src/model/time.ts";
import type { Listing } from "./listing.ts";
import { type Fault, type Jump, type Script, START_MS } from "./script.ts";

/**
 * Faults by how they can be found: in a list, by a rising usage, after a restart that the list shows, or only by
 * chance.
 */
export const DETECTION_KINDS = ["offline", "creep", "signalled", "jump"] as const;
export type DetectionKind = (typeof DETECTION_KINDS)[number];

/** Detection time of each fault, or Infinity if it was not found while it lasted. */
export type Latencies = Readonly<Record<DetectionKind, readonly DurationMs[]>>;

/** Records which faults a contender has found. */
export interface Detector {
  /** Returns the visible faults that have not been found yet. */
  undetected(at: EpochMs): Iterable<Fault>;
  recordDetection(fault: Fault, at: EpochMs): void;
  /** Records a page of the list, counted from 0, with the state at `servedAt`, received at `knownAt`. */
  recordPage(page: number, servedAt: EpochMs, knownAt: EpochMs): void;
  /** Records a detail read. With `findsFaults`, the faults that the detail shows are found. */
  recordDetail(index: number, servedAt: EpochMs, knownAt: EpochMs, findsFaults: boolean): void;
  latencies(): Latencies;
  /** Time of the last detail read by node. */
  readonly detailedAt: Float64Array;
}

/** Creates a detector for the faults of a script. All details of the `nodes` nodes were read at the start. */
export function createDetector(script: Script, nodes: number, listing: Listing): Detector {
  const { faults, shows } = script;
  const foundAt = new Map<Fault | Jump, EpochMs>();
  const jumps = groupBy(script.jumps, ({ index }) => index);
  const faultsOfNode = groupBy(faults, ({ index }) => index);
  const outages = faults.filter(({ load }) => load === null);
  const detailedAt = new Float64Array(nodes).fill(START_MS);
  // Index of the next fault to become visible: faults are sorted by that time.
  let next = 0;
  const undetected = new Set<Fault>();

  const recordDetection = (fault: Fault | Jump, at: EpochMs): void => {
    if (!foundAt.has(fault)) foundAt.set(fault, at);
    undetected.delete(fault as Fault);
  };
  const latency = (fault: Fault | Jump): DurationMs => {
    const at = foundAt.get(fault) ?? Number.POSITIVE_INFINITY;
    return at - fault.visibleAt > script.timetable.lastsMs ? Number.POSITIVE_INFINITY : at - fault.visibleAt;
  };

  return {
    detailedAt,
    recordDetection,
    undetected(at) {
      while (next < faults.length && faults[next]!.visibleAt <= at) {
        const fault = faults[next++]!;
        if (!foundAt.has(fault)) undetected.add(fault);
      }
      for (const fault of undetected) if (at > fault.endsAt) undetected.delete(fault);
      return undetected;
    },
    recordPage(page, servedAt, knownAt) {
      for (const fault of outages) {
        if (shows(fault, servedAt) && listing.pageOf(fault.index, servedAt) === page) recordDetection(fault, knownAt);
      }
    },
    recordDetail(index, servedAt, knownAt, findsFaults) {
      detailedAt[index] = knownAt;
      for (const jump of jumps.get(index) ?? []) if (jump.visibleAt <= servedAt) recordDetection(jump, knownAt);
      if (!findsFaults) return;
      for (const fault of faultsOfNode.get(index) ?? []) if (shows(fault, servedAt)) recordDetection(fault, knownAt);
    },
    latencies: () => ({
      offline: faults.filter(({ kind }) => kind === "offline").map(latency),
      creep: faults.filter(({ kind }) => kind === "creep").map(latency),
      signalled: faults.filter(({ kind }) => kind === "signalled").map(latency),
      jump: script.jumps.map(latency),
    }),
  };
}

/** Returns a quantile of the values, or Infinity if too few faults were found. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => number): ReadonlyMap<number, readonly T[]> {
  const groups = new Map<number, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
