import { DAY_MS, type DurationMs, formatDuration, formatSecondsLeft, MINUTE_MS } from "../../base/duration.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import type { Safety } from "../../model/policy/safety.ts";
import type { Fleet } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { distrust, type Sighting } from "../../inventory/trust.ts";
import type { Books, Proposal } from "../state/journaled-state.ts";
import type { Inventory } from "../../inventory/inventory.ts";

/** What is thought of our own eyes. */
export interface Sight {
  /** Everything that speaks against believing what is seen; none: it is trusted. */
  readonly blockers: readonly Blocker[];
  /** Whether what is seen is not to be believed, rather than merely not all there yet. */
  readonly isBroken: boolean;
}

/** The trust gate over time: keeps the baseline of the inventory, and the cool-down after broken sight. */
export interface SightKeeper {
  look(fleet: Fleet, context: SightContext): Sight;
  /** The largest complete walk that counts; 0: none yet. */
  baseline(): number;
  /**
   * Takes the inventory as it is now for the right one: so many nodes, and so many of those that the list counts not shown.
   * In force once it is written to the journal.
   */
  accept(nodes: number, missing: number): Proposal;
}

/** What a look needs beside the fleet. */
export interface SightContext {
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
const BROKEN = "broken";
/** `BROKEN`, or when the cool-down ends, on the journal's clock; 0: there was none. */
type Cooldown = typeof BROKEN | EpochMs;
/** A last_seen this far after its own observation is still one: clocks differ. */
const AHEAD_MS_MAX: DurationMs = MINUTE_MS;

/** Creates the trust gate from what the journal remembers. */
export function createSightKeeper(
  books: Books,
  safety: () => Safety,
  inventory: Pick<Inventory, "acceptMissing">,
): SightKeeper {
  /** Largest complete walk of each day, by the number of the day. */
  let days = readDays(books.casebook.fact(BASELINE));
  let cooldown = readCooldown(books.casebook.fact(COOLDOWN));
  /** When this process first looked. */
  let startedAt: MonotonicMs | null = null;
  let hasSettled = false;
  let countedAt: MonotonicMs | null = null;

  inventory.acceptMissing(Number(books.casebook.fact(ACCEPTED_MISSING) ?? 0));

  const baseline = () => Math.max(0, ...days.values());

  function count(fleet: Fleet): void {
    if (fleet.lastWalk === null || fleet.settledAt === countedAt || fleet.settledAt === null) return;
    countedAt = fleet.settledAt;
    const today = dayOf(books.now());
    const kept = new Map([...days].filter(([day]) => day > today - BASELINE_DAYS));
    const largest = Math.max(kept.get(today) ?? 0, fleet.lastWalk.met);
    if (kept.size === days.size && largest === days.get(today)) return;
    days = kept.set(today, largest);
    books.record([{ kind: "fact", key: BASELINE, value: JSON.stringify([...days]) }]);
  }

  function setCooldown(next: Cooldown): void {
    if (next === cooldown) return;
    cooldown = next;
    books.record([{ kind: "fact", key: COOLDOWN, value: String(next) }]);
  }

  /** Whether no walk was complete for longer than one counts as fresh since this process started. */
  function wasBlind({ settledAt }: Fleet, freshMs: DurationMs): boolean {
    if (hasSettled || settledAt === null) return false;
    hasSettled = true;
    return freshMs > 0 && startedAt !== null && settledAt - startedAt > freshMs;
  }

  /** The cool-down lasts from when trust returns, whether or not the process was restarted in between. */
  function coolDown(isBroken: boolean, fleet: Fleet, freshMs: DurationMs): Blocker[] {
    const { stormCooldownMs } = safety();
    if (isBroken || wasBlind(fleet, freshMs)) setCooldown(BROKEN);
    if (isBroken) return [];
    const full = formatDuration(stormCooldownMs);
    if (cooldown === BROKEN && fleet.settledAt === null) {
      const detail = `fleet data was not trusted before the restart; it ends ${full} after the first complete walk`;
      return [{ reason: "sight_cooldown", detail }];
    }
    const now = books.now();
    if (cooldown === BROKEN) setCooldown(now + stormCooldownMs);
    const left = Number(cooldown) - now;
    if (left <= 0) return [];
    const detail = `fleet data was not trusted until a while ago; it ends in ${formatSecondsLeft(left)}, if the data stays trusted`;
    return [{ reason: "sight_cooldown", detail }];
  }

  return {
    look(fleet, context) {
      startedAt ??= context.at;
      const { blockers, isBroken } = distrust(sightingOf(fleet, context, baseline()), safety().trust);
      // A walk that is itself not believed is no measure of later ones, unless it is larger.
      if (fleet.lastWalk?.complete === true) count(fleet);
      return { blockers: [...blockers, ...coolDown(isBroken, fleet, context.freshMs)], isBroken };
    },
    baseline,
    accept(nodes, missing) {
      const accepted = new Map([[dayOf(books.now()), nodes]]);
      return {
        changes: [
          { kind: "fact", key: BASELINE, value: JSON.stringify([...accepted]) },
          { kind: "fact", key: ACCEPTED_MISSING, value: String(missing) },
        ],
        adopt() {
          days = accepted;
          inventory.acceptMissing(missing);
        },
      };
    },
  };
}

const UNKNOWN = NODE_STATUSES.indexOf("unknown");

function sightingOf(fleet: Fleet, { at, freshMs, serviceTime }: SightContext, baseline: number): Sighting {
  const { met = 0, rejected = 0, missing = 0, total = 0 } = fleet.lastWalk ?? {};
  const isShort = fleet.lastWalk?.complete === false && !fleet.lastWalk.isCut;
  let unknown = rejected;
  let freshest = Number.POSITIVE_INFINITY;
  for (let slot = 0; slot < fleet.slots; slot++) {
    if (fleet.ids[slot] === "") continue;
    if (fleet.status[slot] === UNKNOWN) unknown++;
    const observedAt = serviceTime(fleet.listedAt[slot]!);
    const age = (observedAt ?? Number.NaN) - fleet.lastSeenMs[slot]!;
    // A node whose clock is ahead says nothing of what the service hears now.
    if (age < freshest && age >= -AHEAD_MS_MAX) freshest = age;
  }
  return {
    completeWalks: fleet.lastWalk?.completeWalks ?? 0,
    lastComplete: fleet.lastWalk?.complete ?? false,
    missing: isShort ? { nodes: missing, of: Math.max(total, met + missing) } : null,
    settledAgeMs: fleet.settledAt === null ? null : at - fleet.settledAt,
    freshMs,
    nodes: met,
    records: met + rejected,
    baseline,
    unknown,
    freshestLastSeenMs: Number.isFinite(freshest) ? freshest : null,
    hasServiceTime: serviceTime(at) !== null,
  };
}

const dayOf = (at: EpochMs): number => Math.floor(at / DAY_MS);

const readCooldown = (text: string | null): Cooldown => (text === BROKEN ? BROKEN : Number(text ?? 0));

function readDays(text: string | null): Map<number, number> {
  return new Map(text === null ? [] : (JSON.parse(text) as [number, number][]));
}
