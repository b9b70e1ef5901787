import { type DurationMs, formatSecondsLeft, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import { formatPercent } from "../base/percent.ts";
import { countNoun } from "../base/text.ts";
import type { Safety } from "../config/schema/safety.ts";
import type { Blocker } from "../model/remediation/episode.ts";

/** `safety.trust.min_inventory` is a share of the largest complete walk of this many days. */
export const BASELINE_DAYS = 7;

/** Facts about the inventory that decide whether it is trusted. */
export interface InventoryStatus {
  /** Complete walks since the process started, or since the configured service changed. */
  readonly completeWalks: number;
  /** Whether the last walk was complete: it reached the end of the list and missed no more nodes than allowed. */
  readonly lastComplete: boolean;
  /**
   * Nodes that the last walk missed, out of those that the list counts, or null if it was complete or could not read
   * every page.
   */
  readonly missing: { readonly nodes: number; readonly of: number } | null;
  /** Age of the last complete walk. Before the first one, the time since the start, or null if no walk has ended yet. */
  readonly completeWalkAgeMs: DurationMs | null;
  /** Time for which earlier 429s, or the Retry-After of earlier 5xx, delay the next walk. */
  readonly walkHeldForMs: DurationMs;
  /** What the month's calls allow, or null if they don't limit walks. */
  readonly monthlyBudget: {
    /** Time between two walks, or null if there are too few calls left for another one. */
    readonly walkIntervalMs: DurationMs | null;
    /** Time until the month ends. */
    readonly leftMs: DurationMs;
  } | null;
  /** How long a walk counts as fresh: three planned intervals, or three measured durations if that is longer. */
  readonly freshMs: DurationMs;
  /** Nodes that the last walk showed; if it could not read every page, those that the list counts. */
  readonly nodes: number;
  /** Number of records in the last walk, including unreadable ones. */
  readonly recordsRead: number;
  /** Nodes of the largest complete walk of the last 7 days, or 0 before the first one. */
  readonly largestWalkNodes: number;
  /** Number of records of the last walk that could not be read, plus nodes with an unknown status. */
  readonly unknownRecords: number;
  /**
   * Age of the latest last_seen of the fleet when it was observed, or null if there is none. Values that are later than
   * their observation are ignored.
   */
  readonly freshestLastSeenMs: DurationMs | null;
  /** Nodes whose last_seen was later than its observation, and is therefore ignored. */
  readonly nodesAhead: number;
  /** Whether any response from the service had a Date header. */
  readonly hasServiceTime: boolean;
}

/** A reason not to trust fleet data, or to wait although it is trusted again. */
export type TrustBlocker = Blocker<
  | "warming_up"
  | "inventory_incomplete"
  | "inventory_shrunk"
  | "inventory_unknown"
  | "last_seen_stale"
  | "service_clock"
  | "sight_cooldown"
>;

/** Blockers that hold every action, and whether fleet data is untrusted rather than just incomplete. */
export interface TrustAssessment {
  readonly blockers: readonly TrustBlocker[];
  /** Whether the data is untrusted. Then pending timers restart from zero, and a cooldown follows. */
  readonly isUntrusted: boolean;
}

/** Returns every reason not to trust the inventory. Evaluated before any policy. */
export function assessTrust(inventory: InventoryStatus, trust: Safety["trust"]): TrustAssessment {
  const untrusted = [...inventoryBlockers(inventory, trust), ...clockBlockers(inventory, trust)];
  const notReady: TrustBlocker[] = [];
  const wait = walkWait(inventory);
  if (inventory.completeWalks < trust.warmupWalks) {
    const detail = `${inventory.completeWalks} of ${trust.warmupWalks} complete walks since the start${wait}`;
    notReady.push({ reason: "warming_up", detail });
  }
  if (!inventory.lastComplete && !hasNoFreshWalk(inventory)) {
    notReady.push({ reason: "inventory_incomplete", detail: `${incompleteDetail(inventory, trust)}${wait}` });
  }
  return { blockers: [...untrusted, ...notReady], isUntrusted: untrusted.length > 0 };
}

/** Where to look if walks keep failing. */
const CAUSE_OF_FAILURE =
  "; for the cause, see the nodes collector in `status`; if a page stays unreadable, an operator can raise safety.trust.max_missing";

/** Returns what the last walk missed, and how the hold ends. */
function incompleteDetail({ completeWalks, missing }: InventoryStatus, trust: Safety["trust"]): string {
  if (missing !== null) {
    const share = formatPercent(trust.maxMissing);
    return `the last walk missed ${missing.nodes} of ${missing.of} nodes, more than ${share}; the hold ends with a walk that misses fewer, or with accept-inventory if the missing nodes do not exist`;
  }
  return completeWalks === 0
    ? "no walk of the node list has completed yet"
    : `the last walk of the nodes was not complete${CAUSE_OF_FAILURE}; the hold ends with the next complete walk`;
}

/** Returns a text that says what delays the next walk, or an empty text if nothing does. */
function walkWait({ walkHeldForMs, monthlyBudget }: InventoryStatus): string {
  const again = (ms: DurationMs) => `the list is read again in ${formatSecondsLeft(ms)}`;
  const reload = "or after a reload that changes limits";
  if (walkHeldForMs >= MINUTE_MS)
    return `; the service answered 429, or 5xx with Retry-After, and ${again(walkHeldForMs)}, ${reload}`;
  if (monthlyBudget === null) return "";
  const { walkIntervalMs, leftMs } = monthlyBudget;
  return walkIntervalMs === null
    ? `; the month's calls do not suffice for another walk, so ${again(leftMs)}, when the month ends, ${reload}`
    : `; the month's calls allow a walk every ${formatSecondsLeft(walkIntervalMs)}, until the month ends in ${formatSecondsLeft(leftMs)}`;
}

const hasNoFreshWalk = ({ completeWalkAgeMs, freshMs }: InventoryStatus): boolean =>
  completeWalkAgeMs !== null && completeWalkAgeMs > freshMs;

function inventoryBlockers(inventory: InventoryStatus, trust: Safety["trust"]): TrustBlocker[] {
  const { completeWalks, nodes, recordsRead, largestWalkNodes, unknownRecords, completeWalkAgeMs, freshMs } = inventory;
  const blockers: TrustBlocker[] = [];
  if (hasNoFreshWalk(inventory)) {
    const wait = walkWait(inventory);
    const reason =
      inventory.missing === null ? wait || CAUSE_OF_FAILURE : `; ${incompleteDetail(inventory, trust)}${wait}`;
    const age = seconds(completeWalkAgeMs!);
    const what =
      completeWalks === 0
        ? `no walk of the nodes has completed in the ${age} since the start`
        : `the last complete walk of the nodes is ${age} old`;
    blockers.push({ reason: "inventory_incomplete", detail: `${what}, more than ${seconds(freshMs)}${reason}` });
  }
  const showsFleet = inventory.lastComplete || inventory.missing !== null || completeWalks > 0;
  if (showsFleet && nodes < trust.minInventory * largestWalkNodes - 1e-9) {
    const detail = `${countNoun(nodes, "node")} ${nodes === 1 ? "is" : "are"} listed, fewer than ${formatPercent(trust.minInventory)} of the ${largestWalkNodes} listed in the last ${BASELINE_DAYS} days; if that is correct, run accept-inventory`;
    blockers.push({ reason: "inventory_shrunk", detail });
  }
  // An incomplete walk does not show the whole fleet, so the share is of the larger count.
  const known = inventory.lastComplete ? recordsRead : Math.max(recordsRead, largestWalkNodes);
  if (unknownRecords > trust.maxUnknown * known + 1e-9) {
    const detail = `${unknownRecords} of ${known} nodes are unreadable or have an unknown status, more than ${formatPercent(trust.maxUnknown)}`;
    blockers.push({ reason: "inventory_unknown", detail });
  }
  return blockers;
}

function clockBlockers(inventory: InventoryStatus, trust: Safety["trust"]): TrustBlocker[] {
  const { completeWalks, nodes, freshestLastSeenMs, nodesAhead, hasServiceTime } = inventory;
  if (completeWalks === 0 || nodes === 0) return [];
  if (!hasServiceTime) {
    return [{ reason: "service_clock", detail: "no response from the service had a Date header" }];
  }
  if (freshestLastSeenMs !== null && freshestLastSeenMs <= trust.maxFreshestLastSeenMs) return [];
  const ahead =
    nodesAhead === 0
      ? ""
      : `; ignoring ${countNoun(nodesAhead, "node")} whose last_seen is later than the service's Date`;
  const detail =
    freshestLastSeenMs === null
      ? "no node has a last_seen, or every one is later than the service's Date"
      : `the freshest last_seen of the whole fleet is ${seconds(freshestLastSeenMs)} old, more than ${seconds(trust.maxFreshestLastSeenMs)}${ahead}`;
  return [{ reason: "last_seen_stale", detail }];
}

const seconds = (ms: DurationMs): string => `${Math.ceil(ms / SECOND_MS)} s`;
