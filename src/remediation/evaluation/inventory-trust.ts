import { DAY_MS, type DurationMs, formatDuration, formatSecondsLeft, MINUTE_MS } from "../../base/duration.ts";
import type { Safety } from "../../config/schema/safety.ts";
import type { Inventory } from "../../inventory/inventory.ts";
import { assessTrust, type InventoryStatus } from "../../inventory/trust.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import type { Fleet } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import type { PendingUpdate, RemediationState } from "../state/journaled-state.ts";

/** Whether fleet data is trusted. */
export interface InventoryTrust {
  /** Every reason not to trust it; empty: it is trusted. */
  readonly blockers: readonly Blocker[];
  /** Whether the data is wrong, and not merely incomplete so far. */
  readonly isUntrusted: boolean;
}

/** Tracks trust over time: the largest walk of the last days, and the cool-down after untrusted data. */
export interface InventoryTrustTracker {
  update(fleet: Fleet, context: TrustContext): InventoryTrust;
  /** The largest complete walk that counts; 0: none yet. */
  largestWalkNodes(): number;
  /**
   * Accepts the inventory as it is: `nodes` listed, and `missing` that the list counts but does not show. In force once it
   * is written to the journal.
   */
  acceptMissing(nodes: number, missing: number): PendingUpdate;
}

/** What an update needs besides the fleet. */
export interface TrustContext {
  readonly at: MonotonicMs;
  /** How long a walk of the nodes counts as fresh, by the plan. */
  readonly freshMs: DurationMs;
  serviceTime(at: MonotonicMs): EpochMs | null;
}

/** The fact that keeps the largest complete walks of the last days. */
export const BASELINE = "warden.baseline";
const COOLDOWN = "warden.sight_cooldown";
/** The fact that says how many nodes an operator accepted as missing. */
export const ACCEPTED_MISSING = "warden.accepted_missing";
const BASELINE_DAYS = 7;
/** Fleet data is not trusted now: the cool-down has not begun. */
const UNTRUSTED_REASONS = "broken";
/** `broken`, or when the cool-down ends, on the journal's clock; 0: there was none. */
type Cooldown = typeof UNTRUSTED_REASONS | EpochMs;
/** How far a last_seen may lie after its own observation: clocks differ. */
const AHEAD_MS_MAX: DurationMs = MINUTE_MS;

/** Creates a tracker with the state of the journal. */
export function createInventoryTrustTracker(
  remediationState: RemediationState,
  safety: () => Safety,
  inventory: Pick<Inventory, "acceptMissing">,
): InventoryTrustTracker {
  /** Largest complete walk of each day, by the number of the day. */
  let days = readDays(remediationState.records.fact(BASELINE));
  let cooldown = readCooldown(remediationState.records.fact(COOLDOWN));
  /** When this process first received a snapshot. */
  let startedAt: MonotonicMs | null = null;
  let isWarmedUp = false;
  let countedAt: MonotonicMs | null = null;

  inventory.acceptMissing(Number(remediationState.records.fact(ACCEPTED_MISSING) ?? 0));

  const largestWalk = () => Math.max(0, ...days.values());

  function recordWalk(fleet: Fleet): void {
    if (fleet.lastWalk === null || fleet.settledAt === countedAt || fleet.settledAt === null) return;
    countedAt = fleet.settledAt;
    const today = dayOf(remediationState.now());
    const stored = new Map([...days].filter(([day]) => day > today - BASELINE_DAYS));
    const largest = Math.max(stored.get(today) ?? 0, fleet.lastWalk.seenNodes);
    if (stored.size === days.size && largest === days.get(today)) return;
    days = stored.set(today, largest);
    remediationState.record([{ kind: "fact", key: BASELINE, value: JSON.stringify([...days]) }]);
  }

  function setCooldown(next: Cooldown): void {
    if (next === cooldown) return;
    cooldown = next;
    remediationState.record([{ kind: "fact", key: COOLDOWN, value: String(next) }]);
  }

  /** Whether no walk was complete for longer than one counts as fresh since this process started. */
  function hadNoFreshWalk({ settledAt: completeWalkAt }: Fleet, freshMs: DurationMs): boolean {
    if (isWarmedUp || completeWalkAt === null) return false;
    isWarmedUp = true;
    return freshMs > 0 && startedAt !== null && completeWalkAt - startedAt > freshMs;
  }

  /** The cool-down lasts from when trust returns, whether or not the process was restarted in between. */
  function updateCooldown(isUntrusted: boolean, fleet: Fleet, freshMs: DurationMs): Blocker[] {
    const { stormCooldownMs } = safety();
    if (isUntrusted || hadNoFreshWalk(fleet, freshMs)) setCooldown(UNTRUSTED_REASONS);
    if (isUntrusted) return [];
    const full = formatDuration(stormCooldownMs);
    if (cooldown === UNTRUSTED_REASONS && fleet.settledAt === null) {
      const detail = `fleet data was not trusted before the restart; it ends ${full} after the first complete walk`;
      return [{ reason: "sight_cooldown", detail }];
    }
    const now = remediationState.now();
    if (cooldown === UNTRUSTED_REASONS) setCooldown(now + stormCooldownMs);
    const left = Number(cooldown) - now;
    if (left <= 0) return [];
    const detail = `fleet data was not trusted until a while ago; it ends in ${formatSecondsLeft(left)}, if the data stays trusted`;
    return [{ reason: "sight_cooldown", detail }];
  }

  return {
    update(fleet, context) {
      startedAt ??= context.at;
      const { blockers, isUntrusted } = assessTrust(inventoryStatusOf(fleet, context, largestWalk()), safety().trust);
      // Only complete walks count for the baseline.
      if (fleet.lastWalk?.complete === true) recordWalk(fleet);
      return { blockers: [...blockers, ...updateCooldown(isUntrusted, fleet, context.freshMs)], isUntrusted };
    },
    largestWalkNodes: largestWalk,
    acceptMissing(nodes, missing) {
      const accepted = new Map([[dayOf(remediationState.now()), nodes]]);
      return {
        changes: [
          { kind: "fact", key: BASELINE, value: JSON.stringify([...accepted]) },
          { kind: "fact", key: ACCEPTED_MISSING, value: String(missing) },
        ],
        apply() {
          days = accepted;
          inventory.acceptMissing(missing);
        },
      };
    },
  };
}

const UNKNOWN_STATUS = NODE_STATUSES.indexOf("unknown");

function inventoryStatusOf(
  fleet: Fleet,
  { at, freshMs, serviceTime }: TrustContext,
  baseline: number,
): InventoryStatus {
  const { seenNodes: met = 0, rejected = 0, missing = 0, total = 0 } = fleet.lastWalk ?? {};
  const isShort = fleet.lastWalk?.complete === false && !fleet.lastWalk.isAborted;
  let unknown = rejected;
  let freshest = Number.POSITIVE_INFINITY;
  for (let slot = 0; slot < fleet.slots; slot++) {
    if (fleet.ids[slot] === "") continue;
    if (fleet.status[slot] === UNKNOWN_STATUS) unknown++;
    const observedAt = serviceTime(fleet.listedAt[slot]!);
    const age = (observedAt ?? Number.NaN) - fleet.lastSeenMs[slot]!;
    // A node whose clock is ahead does not show that the service receives reports.
    if (age < freshest && age >= -AHEAD_MS_MAX) freshest = age;
  }
  return {
    completeWalks: fleet.lastWalk?.completeWalks ?? 0,
    lastComplete: fleet.lastWalk?.complete ?? false,
    missing: isShort ? { nodes: missing, of: Math.max(total, met + missing) } : null,
    completeWalkAgeMs: fleet.settledAt === null ? null : at - fleet.settledAt,
    freshMs,
    nodes: met,
    recordsRead: met + rejected,
    largestWalkNodes: baseline,
    unknownRecords: unknown,
    freshestLastSeenMs: Number.isFinite(freshest) ? freshest : null,
    hasServiceTime: serviceTime(at) !== null,
  };
}

const dayOf = (at: EpochMs): number => Math.floor(at / DAY_MS);

const readCooldown = (text: string | null): Cooldown =>
  text === UNTRUSTED_REASONS ? UNTRUSTED_REASONS : Number(text ?? 0);

function readDays(text: string | null): Map<number, number> {
  return new Map(text === null ? [] : (JSON.parse(text) as [number, number][]));
}
