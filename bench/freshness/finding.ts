import type { DurationMs } from "../../src/base/duration.ts";
import type { EpochMs } from "../../src/model/time.ts";
import type { Listing } from "./listing.ts";
import { type Fault, type Jump, type Script, START_MS } from "./script.ts";

/** Faults by how they are found: by a list, by a usage seen coming, by one that a restart announces, by chance. */
export const KINDS = ["offline", "creep", "signalled", "jump"] as const;
export type Kind = (typeof KINDS)[number];

/** For each fault, how long it took to be found; Infinity: it was not, while it lasted. */
export type Latencies = Readonly<Record<Kind, readonly DurationMs[]>>;

/** Keeps who found what when. */
export interface Finder {
  /** The faults that show and that nobody found. */
  open(at: EpochMs): Iterable<Fault>;
  found(fault: Fault, at: EpochMs): void;
  /** A page of the list, counted from 0, was read as it was at `servedAt`, and known at `knownAt`. */
  page(page: number, servedAt: EpochMs, knownAt: EpochMs): void;
  /** A node was read. Its faults are found only where `faultsToo`: who looks at what was read finds them there. */
  node(index: number, servedAt: EpochMs, knownAt: EpochMs, faultsToo: boolean): void;
  latencies(): Latencies;
  /** When each node was known last. */
  readonly known: Float64Array;
}

/** A finder that found nothing yet, of a script's faults. All details of `nodes` were read at the start. */
export function createFinder(script: Script, nodes: number, listing: Listing): Finder {
  const { faults, shows } = script;
  const foundAt = new Map<Fault | Jump, EpochMs>();
  const jumps = groupBy(script.jumps, ({ index }) => index);
  const ofNode = groupBy(faults, ({ index }) => index);
  const outages = faults.filter(({ strain }) => strain === null);
  const known = new Float64Array(nodes).fill(START_MS);
  // Faults come in the order in which they show: those not yet met stand from here on.
  let next = 0;
  const opened = new Set<Fault>();

  const found = (fault: Fault | Jump, at: EpochMs): void => {
    if (!foundAt.has(fault)) foundAt.set(fault, at);
    opened.delete(fault as Fault);
  };
  const latency = (fault: Fault | Jump): DurationMs => {
    const at = foundAt.get(fault) ?? Number.POSITIVE_INFINITY;
    return at - fault.visibleAt > script.timetable.lastsMs ? Number.POSITIVE_INFINITY : at - fault.visibleAt;
  };

  return {
    known,
    found,
    open(at) {
      while (next < faults.length && faults[next]!.visibleAt <= at) {
        const fault = faults[next++]!;
        if (!foundAt.has(fault)) opened.add(fault);
      }
      for (const fault of opened) if (at > fault.endsAt) opened.delete(fault);
      return opened;
    },
    page(page, servedAt, knownAt) {
      for (const fault of outages) {
        if (shows(fault, servedAt) && listing.pageOf(fault.index, servedAt) === page) found(fault, knownAt);
      }
    },
    node(index, servedAt, knownAt, faultsToo) {
      known[index] = knownAt;
      const waiting = jumps.get(index);
      if (waiting !== undefined) for (const jump of waiting) if (jump.visibleAt <= servedAt) found(jump, knownAt);
      if (!faultsToo) return;
      for (const fault of ofNode.get(index) ?? []) if (shows(fault, servedAt)) found(fault, knownAt);
    },
    latencies: () => ({
      offline: faults.filter(({ kind }) => kind === "offline").map(latency),
      creep: faults.filter(({ kind }) => kind === "creep").map(latency),
      signalled: faults.filter(({ kind }) => kind === "signalled").map(latency),
      jump: script.jumps.map(latency),
    }),
  };
}

/** The value below which that share of the values lies: Infinity where too few of the faults were found. */
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
