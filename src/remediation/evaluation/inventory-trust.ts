import { DAY_MS, type DurationMs, formatDuration, formatSecondsLeft, MINUTE_MS } from "../../base/duration.ts";
import type { AcceptedSessions } from "../../inventory/sessions/session-walks.ts";
import {
  assessTrust,
  BASELINE_DAYS,
  type InventoryStatus,
  type TrustAssessment,
  type TrustBlocker,
} from "../../inventory/trust.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import type { Fleet } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { occupiedSlots } from "../../policy/cel/field-readers.ts";
import type { RemediationRecords } from "../../policy/remediation-records.ts";
import type { DecisionContext, RemediationControllerDeps } from "../context.ts";
import type { PendingUpdate } from "../state/journaled-state.ts";

type TrustDeps = DecisionContext &
  Pick<RemediationControllerDeps, "client" | "rateLimiter" | "inventory" | "sessionWalks">;

/** Key of the fact that holds the largest complete walk of each of the last days. */
export const BASELINE_FACT = "remediation.baseline";

/** Returns how many nodes the largest complete walk of each of the last days had, by day number. */
const largestWalks = (records: RemediationRecords): ReadonlyMap<number, number> =>
  new Map(records.jsonFact<[number, number][]>(BASELINE_FACT));

/** Returns how many nodes the largest complete walk of the last days had, or 0 if there was none. */
export const largestWalkNodes = (records: RemediationRecords): number => Math.max(0, ...largestWalks(records).values());

/** Key of the fact that holds how many nodes an operator accepted as missing. */
export const ACCEPTED_MISSING_FACT = "remediation.accepted_missing";
/** Key of the fact that holds how many sessions an operator accepted as missing. */
export const ACCEPTED_SESSIONS_FACT = "remediation.accepted_missing_sessions";
/** Key of the fact that holds the {@link Cooldown}. */
export const COOLDOWN_FACT = "remediation.trust_cooldown";
/** Value of {@link COOLDOWN_FACT} while fleet data is not trusted. The cooldown starts when trust returns. */
const NOT_STARTED = "untrusted";
/** When the cooldown ends, by the journal's clock, or 0 if there was none; {@link NOT_STARTED} before it starts. */
type Cooldown = typeof NOT_STARTED | EpochMs;
/** How much later than its observation a last_seen may be, because clocks differ. */
const AHEAD_MS_MAX: DurationMs = MINUTE_MS;

/** Tracks trust over time, and journals the largest walk of the last days and the cooldown after untrusted data. */
export class InventoryTrustTracker {
  readonly #context: TrustDeps;
  /** When the first snapshot since the start or the last reload was assessed, or null before that. */
  #startedAt: MonotonicMs | null = null;
  #hadCompleteWalk = false;
  #recordedWalkAt: MonotonicMs | null = null;
  /** Nodes of the last complete walk, or null before the first one. */
  #lastWalkNodes: number | null = null;
  /** Why fleet data was last not trusted, in parentheses, or empty if it was trusted since the start or the last reload. */
  #lastCause = "";
  /** Age of the freshest `last_seen` in the last evaluation, or Infinity if no node had one. */
  #freshestLastSeenMs: DurationMs = 0;
  /** When this daemon was last not allowed to poll. */
  #unpolledUntil: MonotonicMs = Number.NEGATIVE_INFINITY;

  constructor(context: TrustDeps) {
    this.#context = context;
    const { records } = context.remediationState;
    context.inventory.acceptance.restoreAccepted(Number(records.fact(ACCEPTED_MISSING_FACT) ?? 0));
    context.sessionWalks.acceptMissing(records.jsonFact<AcceptedSessions>(ACCEPTED_SESSIONS_FACT));
  }

  /**
   * Returns whether the data of the last snapshot is trusted now. Also brings up to date what the journal holds about
   * trust: the cooldown, the largest walks and the accepted numbers.
   */
  current(): TrustAssessment {
    const { clock, observed, remediationState, config } = this.#context;
    if (observed.latest === null)
      return { blockers: [{ reason: "warming_up", detail: "there is no snapshot yet" }], isUntrusted: false };
    const { fleet } = observed;
    if (remediationState.leadershipProblem() !== null) this.#unpolledUntil = clock.monotonic();
    const freshMs = observed.latest.plan.nodes?.freshMs ?? 0;
    this.#startedAt ??= clock.monotonic();
    const { blockers, isUntrusted } = assessTrust(this.#inventoryStatus(fleet, freshMs), config.safety.trust);
    if (fleet.lastWalk?.complete === true) this.#recordWalk(fleet.lastWalk.seenNodes, fleet.settledAt);
    this.#forgetAccepted();
    if (isUntrusted) this.#lastCause = ` (${blockers[0]!.reason})`;
    const cooldownBlockers = this.#updateCooldown(isUntrusted, fleet, freshMs);
    const clockProblem = remediationState.clock.problem() ?? this.#dateProblem(fleet);
    const clockBlockers: TrustBlocker[] =
      clockProblem === null ? [] : [{ reason: "service_clock", detail: clockProblem }];
    return { blockers: [...clockBlockers, ...blockers, ...cooldownBlockers], isUntrusted };
  }

  /** Returns why the Date headers, or a suspension of the machine, hold every action, or null if they do not. */
  #dateProblem({ settledFrom }: Fleet): string | null {
    const { client, clock, remediationState } = this.#context;
    const serviceNow = client.serviceTime(clock.monotonic());
    const agreedAt = client.serviceTimeAgreedAt();
    if (serviceNow === null || agreedAt !== null)
      return remediationState.clock.suspensionProblem(serviceNow, agreedAt, settledFrom);
    return "no two responses from the service have agreed on its Date yet; the hold ends with the next response that agrees";
  }

  /**
   * Accepts the inventory as it is, with `nodes` that are listed and `missing` more that the list counts but does not
   * show, and the sessions that their list counts but does not show. Takes effect once it is journaled.
   */
  acceptMissing(nodes: number, missing: number): PendingUpdate {
    const { inventory, remediationState, sessionWalks } = this.#context;
    const sessions = sessionWalks.acceptable();
    const baseline = JSON.stringify([[dayOf(remediationState.now()), nodes]]);
    const changes: JournalChange[] = [
      { kind: "fact", key: BASELINE_FACT, value: baseline },
      { kind: "fact", key: ACCEPTED_MISSING_FACT, value: String(missing) },
      ...(sessions === null
        ? []
        : [{ kind: "fact", key: ACCEPTED_SESSIONS_FACT, value: JSON.stringify(sessions) } as const]),
    ];
    return {
      changes,
      apply() {
        inventory.acceptance.acceptMissing(missing);
        if (sessions !== null) sessionWalks.acceptMissing(sessions);
      },
    };
  }

  /** Removes accepted numbers that no longer apply from the journal, since a restart would bring them back. */
  #forgetAccepted(): void {
    const { inventory, remediationState, sessionWalks } = this.#context;
    const applies = new Map([
      [ACCEPTED_MISSING_FACT, inventory.acceptance.acceptsMissing()],
      [ACCEPTED_SESSIONS_FACT, sessionWalks.acceptsMissing()],
    ]);
    for (const [key, isAccepted] of applies) {
      if (!isAccepted && remediationState.records.fact(key) !== null)
        remediationState.record([{ kind: "fact", key, value: null }]);
    }
  }

  /**
   * Records a complete walk. A larger fleet counts once two walks in a row show it, since one may show nodes that do not
   * exist. Without an earlier walk, the first one counts.
   */
  #recordWalk(nodes: number, settledAt: MonotonicMs | null): void {
    if (settledAt === null || settledAt === this.#recordedWalkAt) return;
    this.#recordedWalkAt = settledAt;
    const { remediationState } = this.#context;
    const today = dayOf(remediationState.now());
    const known = largestWalks(remediationState.records);
    const recent = new Map([...known].filter(([day]) => day > today - BASELINE_DAYS));
    const earlier = this.#lastWalkNodes ?? (recent.size === 0 ? nodes : Math.max(...recent.values()));
    this.#lastWalkNodes = nodes;
    const largest = Math.max(recent.get(today) ?? 0, Math.min(nodes, earlier));
    if (recent.size === known.size && largest === known.get(today)) return;
    recent.set(today, largest);
    remediationState.record([{ kind: "fact", key: BASELINE_FACT, value: JSON.stringify([...recent]) }]);
  }

  /** Updates the cooldown, and returns its blocker. It begins when trust returns, and lasts even if the process restarts. */
  #updateCooldown(isUntrusted: boolean, fleet: Fleet, freshMs: DurationMs): TrustBlocker[] {
    const { remediationState, config } = this.#context;
    const { stormCooldownMs } = config.safety;
    // Without a complete walk since this daemon was not allowed to poll, old data shows nothing about the service.
    const isUnexplained = isUntrusted && (fleet.settledAt ?? Number.POSITIVE_INFINITY) > this.#unpolledUntil;
    if (isUnexplained || this.#startedWithoutFreshWalk(fleet, freshMs)) this.#setCooldown(NOT_STARTED);
    if (isUntrusted) return [];
    const known = this.#cooldown();
    if (known === NOT_STARTED && fleet.settledAt === null) {
      const full = formatDuration(stormCooldownMs);
      const detail = `fleet data was not trusted before the restart; the hold ends ${full} after the first complete walk`;
      return [{ reason: "sight_cooldown", detail }];
    }
    const now = remediationState.now();
    // The configured duration may have been shortened since the cooldown began.
    const end = Math.min(known === NOT_STARTED ? Number.POSITIVE_INFINITY : known, now + stormCooldownMs);
    this.#setCooldown(end);
    const left = end - now;
    if (left <= 0) return [];
    const detail = `fleet data was not trusted until recently${this.#lastCause}; the hold ends in ${formatSecondsLeft(left)}, if the data stays trusted`;
    return [{ reason: "sight_cooldown", detail }];
  }

  #cooldown(): Cooldown {
    const fact = this.#context.remediationState.records.fact(COOLDOWN_FACT);
    return fact === NOT_STARTED ? NOT_STARTED : Number(fact ?? 0);
  }

  #setCooldown(next: Cooldown): void {
    if (next === this.#cooldown()) return;
    this.#context.remediationState.record([{ kind: "fact", key: COOLDOWN_FACT, value: String(next) }]);
  }

  /**
   * Returns whether this is the first complete walk since the start or the last reload, and it ended more than `freshMs`
   * after that.
   */
  #startedWithoutFreshWalk({ settledAt }: Fleet, freshMs: DurationMs): boolean {
    if (this.#hadCompleteWalk || settledAt === null) return false;
    this.#hadCompleteWalk = true;
    return freshMs > 0 && this.#startedAt !== null && settledAt - this.#startedAt > freshMs;
  }

  #inventoryStatus(fleet: Fleet, freshMs: DurationMs): InventoryStatus {
    const { client, clock, rateLimiter } = this.#context;
    const now = clock.monotonic();
    const { seenNodes = 0, rejected = 0, missing = 0, total = 0 } = fleet.lastWalk ?? {};
    const blindSince = fleet.settledAt ?? (fleet.lastWalk === null ? null : this.#startedAt);
    const isShort = fleet.lastWalk?.complete === false && !fleet.lastWalk.isAborted;
    return {
      completeWalks: fleet.lastWalk?.completeWalks ?? 0,
      lastComplete: fleet.lastWalk?.complete ?? false,
      missing: isShort ? { nodes: missing, of: Math.max(total, seenNodes + missing) } : null,
      completeWalkAgeMs: blindSince === null ? null : now - blindSince,
      walkHeldForMs: rateLimiter.heldForMs("node_management", "walk"),
      monthlyBudget: this.#monthlyBudget(fleet, now),
      freshMs,
      nodes: countListed(fleet),
      recordsRead: seenNodes + rejected,
      largestWalkNodes: largestWalkNodes(this.#context.remediationState.records),
      ...this.#recordStatus(fleet),
      hasServiceTime: client.serviceTime(now) !== null,
    };
  }

  /** Returns what the month's calls allow, or null if they don't limit walks. */
  #monthlyBudget({ lastWalk }: Fleet, now: MonotonicMs): InventoryStatus["monthlyBudget"] {
    const plan = this.#context.observed.latest!.plan.nodes;
    if (plan?.boundBy !== "month") return null;
    const leftMs = this.#context.rateLimiter.monthLeftMs();
    const nextWalkMs = plan.intervalMs - (lastWalk === null ? 0 : now - lastWalk.at);
    return { walkIntervalMs: nextWalkMs < leftMs ? plan.intervalMs : null, leftMs };
  }

  /** Returns what the records of the fleet, and the unreadable ones of the last walk, show. */
  #recordStatus(fleet: Fleet): Pick<InventoryStatus, "unknownRecords" | "freshestLastSeenMs" | "nodesAhead"> {
    const { client } = this.#context;
    const { slots, status } = fleet;
    const occupied = occupiedSlots(fleet.ids);
    let [unknownRecords, nodesAhead] = [fleet.lastWalk?.rejected ?? 0, 0];
    let freshest = Number.POSITIVE_INFINITY;
    let isDateInDoubt = false;
    let listedAt = Number.NaN;
    let observedAt: EpochMs | null = null;
    for (let begin = 0; begin < slots; begin += SLOTS_AT_ONCE) {
      const end = Math.min(slots, begin + SLOTS_AT_ONCE);
      fleet.listedAt.copyTo(listedAtTimes, begin, end);
      fleet.lastSeenMs.copyTo(lastSeenTimes, begin, end);
      for (let slot = begin; slot < end; slot++) {
        if (occupied[slot] === 0) continue;
        if (status[slot] === UNKNOWN_STATUS) unknownRecords++;
        // The nodes of a page were observed at the same time.
        if (listedAtTimes[slot - begin] !== listedAt) {
          listedAt = listedAtTimes[slot - begin]!;
          observedAt = client.serviceTime(listedAt);
        }
        isDateInDoubt ||= observedAt === null;
        const age = (observedAt ?? Number.NaN) - lastSeenTimes[slot - begin]!;
        // A node whose clock is ahead does not show that the service receives reports.
        if (age < -AHEAD_MS_MAX) nodesAhead++;
        else if (age < freshest) freshest = age;
      }
    }
    // Until the next response shows whether the Date of these records was right, their age says nothing.
    if (isDateInDoubt) freshest = Math.min(freshest, this.#freshestLastSeenMs);
    this.#freshestLastSeenMs = freshest;
    return { unknownRecords, nodesAhead, freshestLastSeenMs: Number.isFinite(freshest) ? freshest : null };
  }
}

/**
 * Returns how many nodes the last walk showed. If it could not read every page, returns how many known nodes the list
 * counts, or all of them if not even the first page was read.
 */
function countListed({ lastWalk, count }: Fleet): number {
  const { isAborted = false, seenNodes = 0, total = 0 } = lastWalk ?? {};
  if (!isAborted) return seenNodes;
  return total === 0 ? count : Math.max(seenNodes, Math.min(total, count));
}

/** Slots whose times are copied at once: reading an array is several times as fast as reading a column. */
const SLOTS_AT_ONCE = 4_096;
const listedAtTimes = new Float64Array(SLOTS_AT_ONCE);
const lastSeenTimes = new Float64Array(SLOTS_AT_ONCE);

const UNKNOWN_STATUS = NODE_STATUSES.indexOf("unknown");

const dayOf = (at: EpochMs): number => Math.floor(at / DAY_MS);
