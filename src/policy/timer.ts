import type { DurationMs } from "../base/duration.ts";
import type { NodeId } from "../model/node.ts";
import type { TimerRow } from "../model/remediation/episode.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import type { Verdict } from "./evaluation.ts";

/**
 * State of the timer of one policy on one node. It implements Prometheus' `for` and `keep_firing_for` over fresh
 * observations.
 *
 * ```
 *              true                 proven
 *   inactive ───────▶ pending ──────────────────▶ firing ◀──────────┐
 *      ▲                │                          │   │            │ proven
 *      │  false, unseen,│                  cleared │   │ unseen     │
 *      ├─── untrusted ──┘                          │   ▼            │
 *      ├───────────────────────────────────────────┘  lapsed ───────┘
 *      └─────────────────── cleared ────────────────────┘
 * ```
 *
 * For `for`, time counts only between two consecutive observations that are at most `max_age` apart. A longer gap, an
 * unknown verdict and a restart don't count, but don't reset the timer either, unless `when` stays unknown for longer than
 * `max_age + for`. Then the node is unseen, and `when` has to be true for `for` again. For `clear_for`, the time between
 * two observations counts even if `when` was unknown in between: both show that no action is needed.
 */
export type TimerState = "inactive" | "pending" | "firing" | "lapsed";

/**
 * An event of a timer. `true`, `false` and `unknown` are verdicts of `when`. With `proven` it was true for `for`, with
 * `cleared` false for `clear_for`. With `unseen` the node left the fleet, or `when` was unknown for longer than
 * `max_age + for`. With `untrusted` fleet data is not trusted, or a record of the node contradicts the last observation.
 */
export type TimerEvent = "true" | "proven" | "false" | "cleared" | "unknown" | "unseen" | "untrusted";

/** The events that change the state, by the state before. */
const TIMER_TRANSITIONS: Readonly<Record<TimerState, Readonly<Partial<Record<TimerEvent, TimerState>>>>> = {
  inactive: { true: "pending", proven: "firing" },
  pending: { proven: "firing", false: "inactive", cleared: "inactive", unseen: "inactive", untrusted: "inactive" },
  firing: { cleared: "inactive", unseen: "lapsed" },
  // It has fired before. The episode that began then may continue until `clear_for` is over.
  lapsed: { proven: "firing", cleared: "inactive" },
};

/** Returns the state after an event. */
export const nextTimerState = (state: TimerState, event: TimerEvent): TimerState =>
  TIMER_TRANSITIONS[state][event] ?? state;

/** A timer and the time that it has counted. */
export interface Timer {
  readonly state: TimerState;
  /** Time for which `when` was observed to be true since it was last observed to be false; compared with `for`. */
  readonly trueMs: DurationMs;
  /** Time for which `when` has been observed to be false since the timer fired; compared with `clear_for`. */
  readonly clearMs: DurationMs;
  /** When it left the inactive state, on the journal's clock, or null if it is inactive. */
  readonly since: EpochMs | null;
  /** The last observation by this process, or null if there is none yet. */
  readonly last: LastObservation | null;
  /** When `when` became unknown, by the journal's clock, or null if it was known in the last observation. */
  readonly unknownSince: EpochMs | null;
}

/** The observation that the next one is compared with. */
interface LastObservation {
  /** The verdict; `unknown` means that counting was interrupted and restarts with the next observation. */
  readonly verdict: Observation["verdict"];
  /** Time is counted up to here. */
  readonly at: MonotonicMs;
  /** Time of the newest data of the last known verdict. An observation without newer data adds no time. */
  readonly newest: MonotonicMs;
}

/** The durations of a policy. */
export interface TimerDurations {
  readonly forMs: DurationMs;
  readonly clearForMs: DurationMs;
  /** Longest gap between two observations that counts for `for`: the `max_age` of the data that the policy reads. */
  readonly gapMsMax: DurationMs;
}

/** One evaluation of a policy on a node. The evaluations of a node are in chronological order. */
export interface Observation {
  readonly verdict: Verdict;
  /** When the oldest data that was read was observed. Time is counted up to here. Ignored if the verdict is unknown. */
  readonly at: MonotonicMs;
  /** When the newest data was observed, not before `at`. Counting starts here. */
  readonly newest: MonotonicMs;
  /**
   * When a record last showed data for which the verdict may have differed. Absent or NaN means that none did.
   */
  readonly contradictedAt?: MonotonicMs;
  /** The journal's clock. */
  readonly now: EpochMs;
}

/** An inactive timer. Nearly all pairs of a policy and a node share this object. */
export const INACTIVE: Timer = Object.freeze({
  state: "inactive",
  trueMs: 0,
  clearMs: 0,
  since: null,
  last: null,
  unknownSince: null,
});

/** Returns the timer of an open episode whose timer was dropped. Without one, the episode would count as healthy. */
export const lapsedTimer = (since: EpochMs): Timer => ({ ...INACTIVE, state: "lapsed", since });

/**
 * Returns the timer after an observation, which is the same object if nothing changes.
 *
 * `clearFrozen` is true while an action or quarantine of ours is under way. A false verdict then says nothing about the
 * node's health, so it does not count for `clear_for`, and the timer does not lapse.
 */
export function observeCondition(
  timer: Timer,
  observation: Observation,
  durations: TimerDurations,
  { clearFrozen = false }: { readonly clearFrozen?: boolean } = {},
): Timer {
  const { verdict, newest, now } = observation;
  const seen = !clearFrozen && isUnknownTooLong(timer, now, durations) ? markUnseen(timer) : timer;
  const before = isContradicted(seen, observation) ? restart(seen) : seen;
  if (before.state === "inactive") return verdict === "true" ? startTimer(observation, durations) : INACTIVE;
  if (verdict === "unknown") return clearFrozen ? interrupt(before, null) : markUnknown(before, now);
  if (before.last !== null && newest < before.last.newest) return before;
  if (verdict === "false" && before.state !== "pending" && clearFrozen) {
    // Recorded so that the same data does not clear the timer later.
    return { ...before, trueMs: 0, last: { verdict: "unknown", at: newest, newest }, unknownSince: null };
  }
  if (before.last !== null && newest === before.last.newest) return reobserve(before, verdict);
  return observeNewer(before, observation, durations);
}

/** Returns whether a record since the last observation may have shown another verdict, which was not evaluated. */
const isContradicted = ({ last }: Timer, { contradictedAt = Number.NaN }: Observation): boolean =>
  contradictedAt > (last?.newest ?? Number.NEGATIVE_INFINITY);

/**
 * Returns the timer with counts that start again from zero. A firing one keeps its state, and `when` stays unknown if it
 * was.
 */
function restart(timer: Timer): Timer {
  const state = nextTimerState(timer.state, "untrusted");
  if (state === "inactive") return INACTIVE;
  return withoutCounts(interrupt(timer, timer.unknownSince));
}

/** Returns whether `when` was unknown for longer than `max_age + for`. */
const isUnknownTooLong = ({ unknownSince }: Timer, now: EpochMs, { gapMsMax, forMs }: TimerDurations): boolean =>
  unknownSince !== null && now - unknownSince > gapMsMax + forMs;

/** Returns the timer after the node left the fleet, or after `when` was unknown for too long. */
export function markUnseen(timer: Timer): Timer {
  const state = nextTimerState(timer.state, "unseen");
  if (state === "inactive") return INACTIVE;
  const interrupted = withoutCounts(interrupt(timer, null));
  return state === interrupted.state ? interrupted : { ...interrupted, state };
}

const withoutCounts = (timer: Timer): Timer =>
  timer.trueMs === 0 && timer.clearMs === 0 ? timer : { ...timer, trueMs: 0, clearMs: 0 };

/** Starts counting at the newest data, which made the condition true. Older data may be from before that. */
function startTimer({ newest, now }: Observation, { forMs }: TimerDurations): Timer {
  const state = nextTimerState("inactive", forMs === 0 ? "proven" : "true");
  return { ...INACTIVE, state, since: now, last: { verdict: "true", at: newest, newest } };
}

/** Returns the timer after an observation with newer data and a known verdict. */
function observeNewer(timer: Timer, observation: Observation, durations: TimerDurations): Timer {
  const { last } = timer;
  const { verdict, at, newest } = observation;
  const isContinuation = last !== null && isContinuous(last, observation, durations);
  const countedTo = isContinuation ? Math.max(last.at, at) : newest;
  const addedMs = isContinuation ? countedTo - last.at : 0;
  const [trueMs, clearMs] = verdict === "true" ? [timer.trueMs + addedMs, 0] : [0, timer.clearMs + addedMs];
  const ended = verdict === "true" ? trueMs >= durations.forMs : clearMs >= durations.clearForMs;
  const event = ended ? (verdict === "true" ? "proven" : "cleared") : verdict;
  const state = nextTimerState(timer.state, event);
  if (state === "inactive") return INACTIVE;
  return { ...timer, state, trueMs, clearMs, last: { verdict, at: countedTo, newest }, unknownSince: null };
}

/**
 * Returns the timer after an observation without newer data, which adds no time. If the verdict differs nevertheless, or
 * counting was interrupted, the counts that the verdict resets are reset, and counting restarts with newer data.
 */
function reobserve(timer: Timer, verdict: "true" | "false"): Timer {
  if (timer.last?.verdict === verdict) return timer.unknownSince === null ? timer : { ...timer, unknownSince: null };
  const state = nextTimerState(timer.state, verdict);
  if (state === "inactive") return INACTIVE;
  const trueMs = verdict === "false" ? 0 : timer.trueMs;
  const clearMs = verdict === "true" ? 0 : timer.clearMs;
  const isSame = trueMs === timer.trueMs && clearMs === timer.clearMs;
  return interrupt(isSame ? timer : { ...timer, trueMs, clearMs }, null);
}

/** Returns whether the time between two observations counts. */
const isContinuous = (last: LastObservation, observation: Observation, { gapMsMax }: TimerDurations): boolean =>
  last.verdict === observation.verdict && (last.verdict === "false" || observation.newest - last.newest <= gapMsMax);

/** Returns the timer while `when` is unknown. The time does not count for `for`. */
function markUnknown(timer: Timer, now: EpochMs): Timer {
  if (timer.last?.verdict !== "false") return interrupt(timer, now);
  return timer.unknownSince === null ? { ...timer, unknownSince: now } : timer;
}

/**
 * Returns the timer with the same counts. Counting restarts with the next observation. `now` is the time if `when` is
 * unknown, or null if it is known.
 */
function interrupt(timer: Timer, now: EpochMs | null): Timer {
  const unknownSince = now === null ? null : (timer.unknownSince ?? now);
  const { last } = timer;
  const isInterrupted = last === null || last.verdict === "unknown";
  if (isInterrupted && unknownSince === timer.unknownSince) return timer;
  return { ...timer, last: isInterrupted ? last : { ...last, verdict: "unknown" }, unknownSince };
}

/**
 * Returns the timer while fleet data is not trusted. Pending and lapsed timers start again from zero. A firing timer
 * keeps its state, unless the data is not trusted for longer than `max_age + for`.
 */
export function markUntrusted(timer: Timer, now: EpochMs): Timer {
  if (nextTimerState(timer.state, "untrusted") === "inactive") return INACTIVE;
  return timer.state === "lapsed" ? markUnseen(timer) : markUnknown(timer, now);
}

/** Returns the timer of a journal row. The time since the row was written does not count. */
export const restoreTimer = ({ state, trueMs, clearMs, since }: TimerRow): Timer => ({
  ...INACTIVE,
  state,
  trueMs,
  clearMs,
  since,
});

/**
 * Returns the journal row of a timer, or null if it is inactive. `nodeCreatedAt` is the node's `created_at`. Absent
 * means unknown.
 */
export function toTimerRow(policy: string, node: NodeId, timer: Timer, nodeCreatedAt?: EpochMs): TimerRow | null {
  const { state, trueMs, clearMs, since } = timer;
  if (state === "inactive" || since === null) return null;
  const row = { policy, node, state, trueMs, clearMs, since };
  return nodeCreatedAt === undefined ? row : { ...row, nodeCreatedAt };
}

/** Returns a timer as the API and the CLI show it. A lapsed timer is shown as pending, because it has to fire again. */
export const presentTimer = (row: TimerRow) => ({ ...row, state: row.state === "lapsed" ? "pending" : row.state });
export type PresentedTimer = ReturnType<typeof presentTimer>;

/**
 * Returns the timer after the `for` of its policy became longer, if no action was taken yet. A firing timer that does not
 * reach it becomes pending, or inactive if `when` was observed to be false since.
 */
export function applyLongerFor(timer: Timer, forMs: DurationMs): Timer {
  if (timer.state !== "firing" || timer.trueMs >= forMs) return timer;
  const isClearing = timer.clearMs > 0 || timer.last?.verdict === "false";
  return isClearing ? INACTIVE : { ...timer, state: "pending" };
}
