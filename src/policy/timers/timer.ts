import type { DurationMs } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { TimerRow } from "../../model/remediation/episode.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";

/**
 * The timer of one policy over one node: Prometheus' `for` and `keep_firing_for`, over fresh observations only.
 *
 * ```
 *              true                 proven
 *   inactive ───────▶ pending ──────────────────▶ firing ◀──────────┐
 *      ▲                │                          │   │            │ proven
 *      │  false, unseen,│                  cleared │   │ unseen     │
 *      ├─── distrusted ─┘                          │   ▼            │
 *      ├───────────────────────────────────────────┘  lapsed ───────┘
 *      └─────────────────── cleared ────────────────────┘
 * ```
 *
 * Time counts only between two consecutive observations of the same verdict that are not too far apart. A gap that is
 * too long, an unknown verdict and a restart add nothing and take nothing away, unless they last for longer than
 * `max_age + for`: the node is then unseen, and `for` has to be proven again.
 */
export type TimerState = "inactive" | "pending" | "firing" | "lapsed";

/**
 * What happens to a timer. `true`: `when` is observed to be true; `proven`: it was so for `for`; `false`; `cleared`: it was
 * false for `clear_for`; `unknown`; `unseen`: the node left the fleet, or nothing was known of `when` for longer than
 * `max_age + for`; `distrusted`: the data of the fleet can't be trusted.
 */
export type TimerEvent = "true" | "proven" | "false" | "cleared" | "unknown" | "unseen" | "distrusted";

/** The state after an event, by the state before it. */
export const TIMER_TRANSITIONS: Readonly<Record<TimerState, Readonly<Record<TimerEvent, TimerState>>>> = {
  inactive: {
    ...{ true: "pending", proven: "firing", false: "inactive", cleared: "inactive" },
    ...{ unknown: "inactive", unseen: "inactive", distrusted: "inactive" },
  },
  pending: {
    ...{ true: "pending", proven: "firing", false: "inactive", cleared: "inactive" },
    ...{ unknown: "pending", unseen: "inactive", distrusted: "inactive" },
  },
  firing: {
    ...{ true: "firing", proven: "firing", false: "firing", cleared: "inactive" },
    ...{ unknown: "firing", unseen: "lapsed", distrusted: "firing" },
  },
  // It fired: `for` has to be proven again, and as long as `clear_for` is not, what began with it may go on.
  lapsed: {
    ...{ true: "lapsed", proven: "firing", false: "lapsed", cleared: "inactive" },
    ...{ unknown: "lapsed", unseen: "lapsed", distrusted: "lapsed" },
  },
};

/** One timer, and what it has counted. */
export interface Timer {
  readonly state: TimerState;
  /** Time for which `when` was observed to be true: drives `for`. */
  readonly trueMs: DurationMs;
  /** Of a firing or lapsed one: time for which it was observed to be false again: drives `clear_for`. */
  readonly clearMs: DurationMs;
  /** When this run of it began, on the journal's clock; null: inactive. */
  readonly since: EpochMs | null;
  /** The last observation by this process; null: none yet. */
  readonly last: LastObservation | null;
  /** Since when `when` is unknown, on the journal's clock; null: the last observation knew it. */
  readonly unknownSince: EpochMs | null;
}

/** What the next observation continues from. */
export interface LastObservation {
  /** `unknown`: continuity is lost, and counting restarts with the next observation. */
  readonly verdict: Observation["verdict"];
  /** Time has been counted up to here. */
  readonly at: MonotonicMs;
  /** Youngest datum of the last observation with a known verdict; an observation without younger data is ignored. */
  readonly newest: MonotonicMs;
}

/** The durations of a policy that a timer follows. */
export interface TimerRule {
  readonly forMs: DurationMs;
  readonly clearForMs: DurationMs;
  /** Longest gap between two observations that still counts: the `max_age` of what the policy reads. */
  readonly gapMsMax: DurationMs;
}

/** One evaluation of a policy on a node. Evaluations of a node come in order. */
export interface Observation {
  readonly verdict: "true" | "false" | "unknown";
  /** When the oldest datum that was read was observed: nothing is counted beyond it. Means nothing where unknown. */
  readonly at: MonotonicMs;
  /** When the youngest was, never before `at`: a thread begins there. Absent: all of them are of one age. */
  readonly newest?: MonotonicMs;
  /** The journal's clock. */
  readonly now: EpochMs;
}

/** The timer of nearly every pair of a policy and a node: one object for all of them. */
export const INACTIVE: Timer = Object.freeze({
  ...{ state: "inactive", trueMs: 0, clearMs: 0, since: null, last: null, unknownSince: null },
});

/**
 * Returns the timer after one more observation; the same object if nothing changes.
 *
 * `clearFrozen`: while an action or a quarantine of ours is under way, a false says nothing about the node's health, so
 * it does not drive `clear_for`; and the timer does not lapse.
 */
export function observeCondition(
  timer: Timer,
  observation: Observation,
  rule: TimerRule,
  options?: { readonly clearFrozen?: boolean },
): Timer {
  const clearFrozen = options?.clearFrozen === true;
  const { verdict, now } = observation;
  const before = !clearFrozen && isUnknownTooLong(timer, now, rule) ? markUnseen(timer) : timer;
  if (before.state === "inactive") return verdict === "true" ? startTimer(observation, rule) : INACTIVE;
  if (verdict === "unknown") return interrupt(before, clearFrozen ? null : now);
  const newest = newestDatumAt(observation);
  if (before.last !== null && newest < before.last.newest) return before;
  if (verdict === "false" && before.state !== "pending" && clearFrozen) {
    // The observation is remembered, so that the same data does not clear the timer later.
    return { ...before, last: { verdict: "unknown", at: newest, newest }, unknownSince: null };
  }
  if (before.last !== null && newest === before.last.newest) return reobserve(before, verdict);
  return verdict === "true" ? observeTrue(before, observation, rule) : observeFalse(before, observation, rule);
}

const newestDatumAt = ({ at, newest = at }: Observation): MonotonicMs => newest;

/** Whether nothing was known of `when` for longer than `max_age + for`. */
const isUnknownTooLong = ({ unknownSince }: Timer, now: EpochMs, { gapMsMax, forMs }: TimerRule): boolean =>
  unknownSince !== null && now - unknownSince > gapMsMax + forMs;

/** The timer of a node that left the fleet, or of which nothing was known for too long. */
export function markUnseen(timer: Timer): Timer {
  const state = TIMER_TRANSITIONS[timer.state].unseen;
  if (state === "inactive") return INACTIVE;
  const interrupted = interrupt(timer, null);
  if (state === interrupted.state && interrupted.trueMs === 0 && interrupted.clearMs === 0) return interrupted;
  return { ...interrupted, state, trueMs: 0, clearMs: 0 };
}

/** The oldest datum may be older than the run: counting begins with the youngest, by which it became true. */
function startTimer(observation: Observation, { forMs }: TimerRule): Timer {
  const newest = newestDatumAt(observation);
  return {
    state: TIMER_TRANSITIONS.inactive[forMs === 0 ? "proven" : "true"],
    trueMs: 0,
    clearMs: 0,
    since: observation.now,
    last: { verdict: "true", at: newest, newest },
    unknownSince: null,
  };
}

function observeTrue(timer: Timer, observation: Observation, rule: TimerRule): Timer {
  const trueMs = timer.trueMs + creditMs(timer.last, observation, rule);
  return {
    state: TIMER_TRANSITIONS[timer.state][trueMs >= rule.forMs ? "proven" : "true"],
    trueMs,
    clearMs: 0,
    since: timer.since,
    last: nextLastObservation(timer.last, observation, rule),
    unknownSince: null,
  };
}

function observeFalse(timer: Timer, observation: Observation, rule: TimerRule): Timer {
  const clearMs = timer.clearMs + creditMs(timer.last, observation, rule);
  const state = TIMER_TRANSITIONS[timer.state][clearMs >= rule.clearForMs ? "cleared" : "false"];
  if (state === "inactive") return INACTIVE;
  const last = nextLastObservation(timer.last, observation, rule);
  return { ...timer, state, trueMs: retainedTrueMs(timer), clearMs, last, unknownSince: null };
}

/** A false takes nothing from what has fired; one that is to prove `for` again begins from zero. */
const retainedTrueMs = ({ state, trueMs }: Timer): DurationMs => (state === "lapsed" ? 0 : trueMs);

/**
 * The same data again: nothing is news. If yet the verdict is another one (or the thread was broken in between), what
 * it forbids is heeded, and nothing counts until there is younger data.
 */
function reobserve(timer: Timer, verdict: "true" | "false"): Timer {
  if (timer.last?.verdict === verdict) return timer;
  const state = TIMER_TRANSITIONS[timer.state][verdict];
  if (state === "inactive") return INACTIVE;
  const trueMs = verdict === "false" ? retainedTrueMs(timer) : timer.trueMs;
  const clearMs = verdict === "true" ? 0 : timer.clearMs;
  const isSame = trueMs === timer.trueMs && clearMs === timer.clearMs;
  return interrupt(isSame ? timer : { ...timer, trueMs, clearMs }, null);
}

/** Time that the observation adds to what was counted before. */
function creditMs(last: LastObservation | null, observation: Observation, rule: TimerRule): DurationMs {
  return last !== null && isContinuous(last, observation, rule) ? Math.max(0, observation.at - last.at) : 0;
}

function nextLastObservation(last: LastObservation | null, observation: Observation, rule: TimerRule): LastObservation {
  const newest = newestDatumAt(observation);
  const isContinuation = last !== null && isContinuous(last, observation, rule);
  return { verdict: observation.verdict, at: isContinuation ? Math.max(last.at, observation.at) : newest, newest };
}

/** Whether what lies between both was seen to be all of one verdict. */
const isContinuous = (last: LastObservation, observation: Observation, { gapMsMax }: TimerRule): boolean =>
  last.verdict === observation.verdict && newestDatumAt(observation) - last.newest <= gapMsMax;

/** Keeps the state and both sums, and restarts counting with the next observation. `now`: the condition is unknown since then; null: it is known. */
function interrupt(timer: Timer, now: EpochMs | null): Timer {
  const unknownSince = now === null ? null : (timer.unknownSince ?? now);
  const { last } = timer;
  const isInterrupted = last === null || last.verdict === "unknown";
  if (isInterrupted && unknownSince === timer.unknownSince) return timer;
  return { ...timer, last: isInterrupted ? last : { ...last, verdict: "unknown" }, unknownSince };
}

/**
 * The timer after a view that can't be trusted: a pending and a lapsed one start from zero when trust returns; a firing one
 * goes on as it is, unless that takes longer than `max_age + for`.
 */
export function markUntrusted(timer: Timer, now: EpochMs): Timer {
  if (TIMER_TRANSITIONS[timer.state].distrusted === "inactive") return INACTIVE;
  return timer.state === "lapsed" ? markUnseen(timer) : interrupt(timer, now);
}

/** The timer of a journal's row. The time since the row was written counts for nothing. */
export const restoreTimer = ({ state, trueMs, clearMs, since }: TimerRow): Timer => ({
  ...{ state, trueMs, clearMs, since },
  last: null,
  unknownSince: null,
});

/**
 * The row that the journal keeps of a timer; null: it keeps none. `nodeCreatedAt`: the node's `created_at`; null: not known.
 */
export function toTimerRow(
  policy: string,
  node: NodeId,
  timer: Timer,
  nodeCreatedAt: EpochMs | null = null,
): TimerRow | null {
  const { state, trueMs, clearMs, since } = timer;
  if (state === "inactive" || since === null) return null;
  const row = { policy, node, state, trueMs, clearMs, since };
  return nodeCreatedAt === null ? row : { ...row, nodeCreatedAt };
}

/** A timer as it is shown: one that lapsed has to prove `for` again, and so is pending. */
export interface PresentedTimer extends Omit<TimerRow, "state"> {
  readonly state: "pending" | "firing";
}

/** Shows a timer. */
export const presentTimer = (row: TimerRow): PresentedTimer => ({
  ...row,
  state: row.state === "lapsed" ? "pending" : row.state,
});

/**
 * The timer under a changed rule, for where nothing was done about it yet. A raised `for` that is not reached any more
 * takes a firing one back to pending, or, if it was seen false since, to inactive, as a pending one would be. A lowered
 * `for` fires nothing at once: the next observation of a true `when` does.
 */
export function applyRuleChange(timer: Timer, rule: TimerRule): Timer {
  if (timer.state !== "firing" || timer.trueMs >= rule.forMs) return timer;
  const isClearing = timer.clearMs > 0 || timer.last?.verdict === "false";
  return isClearing ? INACTIVE : { ...timer, state: "pending" };
}
