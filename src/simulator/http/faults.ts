import type { Fault, FaultKind } from "../../config/schema/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { hashUnit, type Uint32 } from "../hash.ts";

/** The faults of a running simulation. */
export interface FaultSchedule {
  readonly startMs: EpochMs;
  readonly seed: Uint32;
  /** The faults, which may be replaced while the simulation runs. Times are since its start. */
  faults: readonly Fault[];
}

type BadDetails = Extract<FaultKind, { kind: "bad_details" }>;

/** A fault that affects a request, and its start. */
export interface ActiveFault {
  readonly fault: FaultKind;
  readonly sinceMs: EpochMs;
}

/**
 * Returns the faults that affect a request. `serial` is the number of the request, from which a fault's share is drawn.
 */
export function activeFaultsFor(
  faultSchedule: FaultSchedule,
  method: string,
  path: string,
  serial: number,
  at: EpochMs,
): ActiveFault[] {
  return faultSchedule.faults
    .filter((fault, index) => {
      if (!isActive(faultSchedule, fault, at) || !matches(fault, method, path)) return false;
      return fault.share === undefined || hashUnit(faultSchedule.seed ^ 0xfa17, serial, index) < fault.share;
    })
    .map(({ fault, afterMs }) => ({ fault, sinceMs: faultSchedule.startMs + afterMs }));
}

/**
 * Returns the fault that makes a node's detail unreadable, or null if there is none. A larger share includes the nodes
 * of a smaller one.
 */
export function badDetailFault(
  activeFaults: readonly Pick<ActiveFault, "fault">[],
  seed: Uint32,
  index: number,
): BadDetails | null {
  const unit = hashUnit(seed ^ 0xdeed, index);
  for (const { fault } of activeFaults) if (fault.kind === "bad_details" && unit < fault.nodes) return fault;
  return null;
}

/** Returns the skew of the service's clock at a time, in milliseconds; positive if the clock is ahead. */
export function clockSkewAt(faultSchedule: FaultSchedule, at: EpochMs): number {
  let skewMs = 0;
  for (const fault of faultSchedule.faults) {
    if (fault.fault.kind === "clock_skew" && isActive(faultSchedule, fault, at)) skewMs += fault.fault.skewMs;
  }
  return skewMs;
}

/** Returns by how many milliseconds faults shift the Date header of a response; negative if into the past. */
export const dateOffsetOf = (activeFaults: readonly ActiveFault[]): number =>
  activeFaults.reduce((sum, { fault }) => sum + (fault.kind === "wrong_date" ? fault.offsetMs : 0), 0);

/** Returns the regions that are cut off at a time. */
export function regionsDownAt(faultSchedule: FaultSchedule, at: EpochMs): ReadonlySet<string> {
  const regions = new Set<string>();
  for (const fault of faultSchedule.faults) {
    if (fault.fault.kind === "region_dark" && isActive(faultSchedule, fault, at)) regions.add(fault.fault.region);
  }
  return regions;
}

/** Returns when a region is next cut off or reconnected after `at`, or Infinity if never. */
export function nextRegionChange(faultSchedule: FaultSchedule, at: EpochMs): EpochMs {
  return faultSchedule.faults
    .filter(({ fault }) => fault.kind === "region_dark")
    .flatMap(({ afterMs, forMs }) => [faultSchedule.startMs + afterMs, faultSchedule.startMs + afterMs + forMs])
    .filter((edge) => edge > at)
    .reduce((first, edge) => Math.min(first, edge), Number.POSITIVE_INFINITY);
}

function isActive(faultSchedule: FaultSchedule, fault: Fault, at: EpochMs): boolean {
  const elapsed = at - faultSchedule.startMs;
  return elapsed >= fault.afterMs && elapsed < fault.afterMs + fault.forMs;
}

/**
 * Returns whether a fault matches a request. `match` is a method, a path prefix, or both, as in `GET /v1/nodes`. With a
 * `?` at the end, it matches only the list.
 */
function matches({ match }: Fault, method: string, path: string): boolean {
  if (match === undefined) return true;
  const [first = "", prefix = ""] = match.trim().split(/\s+/, 2);
  // A request for the list may have no query.
  const target = path.includes("?") ? path : `${path}?`;
  if (first.startsWith("/")) return target.startsWith(first);
  return first.toUpperCase() === method && target.startsWith(prefix);
}
