import type { DurationMs } from "../base/duration.ts";
import type { TimerRow } from "../model/episode.ts";
import type { NodeId } from "../model/node.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

/**
 * The timer of one policy over one node: Prometheus' `for` and `keep_firing_for`, counted in observed time alone. It
 * is `pending` from the first true on, and `firing` once `when` was observed true for `for`; a firing one stays so
 * until it was observed false for `clear_for`.
 *
 * Time counts only between two consecutive observations of the same verdict that are not too far apart. A gap that is
 * too long, an unknown verdict and a restart add nothing and take nothing away.
 */
export interface Timer {
  readonly state: "inactive" | "pending" | "firing";
  /** Time for which `when` was observed to be true: drives `for`. */
  readonly trueMs: DurationMs;
  /** Of a firing one: time for which it was observed to be false again: drives `clear_for`. */
  readonly clearMs: DurationMs;
  /** When this run of it began, on the journal's clock; null: inactive. */
  readonly since: EpochMs | null;
  /** What this process saw last in this run of it; null: nothing yet. */
  readonly last: LastSeen | null;
}

/** Where an observation is to take up from. */
export interface LastSeen {
  /** `unknown`: the thread is broken, and the next observation counts from itself on. */
  readonly verdict: Observation["verdict"];
  /** Time has been counted up to here. */
  readonly at: MonotonicMs;
  /** Youngest datum of the last observation with a known verdict: what holds nothing younger is no news. */
  readonly newest: MonotonicMs;
}

/** What a timer is judged by. */
export interface TimerRule {
  readonly forMs: DurationMs;
  readonly clearForMs: DurationMs;
  /** Longest gap between two observations that still counts: the `max_age` of what the policy reads. */
  readonly gapMsMax: DurationMs;
}

/** One look at a node under a policy. Looks at one node come in the order in which they were made. */
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
export const INACTIVE: Timer = Object.freeze({ state: "inactive", trueMs: 0, clearMs: 0, since: null, last: null });

/**
 * The timer after one more look; the same object where nothing changes.
 *
 * `clearFrozen`: while an action or a quarantine of ours is under way, a false says nothing about the node's health, so
 * it does not drive `clear_for`.
 */
export function observe(
  timer: Timer,
  observation: Observation,
  rule: TimerRule,
  options?: { readonly clearFrozen?: boolean },
): Timer {
  const { verdict } = observation;
  if (timer.state === "inactive") return verdict === "true" ? begun(observation, rule) : timer;
  if (verdict === "unknown") return broken(timer);
  const { last } = timer;
  const newest = newestOf(observation);
  if (last !== null && newest < last.newest) return timer;
  if (verdict === "false" && timer.state === "firing" && options?.clearFrozen === true) {
    // The look is remembered, so that the same data don't clear the timer as soon as it thaws.
    return { ...timer, last: { verdict: "unknown", at: newest, newest } };
  }
  if (last !== null && newest === last.newest) return lookedAgain(timer, verdict);
  return verdict === "true" ? seenTrue(timer, observation, rule) : seenFalse(timer, observation, rule);
}

const newestOf = ({ at, newest = at }: Observation): MonotonicMs => newest;

/** The oldest datum may be older than the run: counting begins with the youngest, by which it became true. */
function begun(observation: Observation, { forMs }: TimerRule): Timer {
  const newest = newestOf(observation);
  return {
    state: forMs === 0 ? "firing" : "pending",
    trueMs: 0,
    clearMs: 0,
    since: observation.now,
    last: { verdict: "true", at: newest, newest },
  };
}

function seenTrue(timer: Timer, observation: Observation, rule: TimerRule): Timer {
  const trueMs = timer.trueMs + creditMs(timer.last, observation, rule);
  return {
    state: timer.state === "firing" || trueMs >= rule.forMs ? "firing" : "pending",
    trueMs,
    clearMs: 0,
    since: timer.since,
    last: followed(timer.last, observation, rule),
  };
}

function seenFalse(timer: Timer, observation: Observation, rule: TimerRule): Timer {
  if (timer.state === "pending") return INACTIVE;
  const clearMs = timer.clearMs + creditMs(timer.last, observation, rule);
  if (clearMs >= rule.clearForMs) return INACTIVE;
  return { ...timer, clearMs, last: followed(timer.last, observation, rule) };
}

/**
 * The same data again: nothing is news. If yet the verdict is another one (or the thread was broken in between), what
 * it forbids is heeded, and nothing counts until there is younger data.
 */
function lookedAgain(timer: Timer, verdict: "true" | "false"): Timer {
  if (timer.last?.verdict === verdict) return timer;
  if (verdict === "false" && timer.state === "pending") return INACTIVE;
  return broken(verdict === "true" && timer.clearMs > 0 ? { ...timer, clearMs: 0 } : timer);
}

/** Time that the observation adds to what was counted before. */
function creditMs(last: LastSeen | null, observation: Observation, rule: TimerRule): DurationMs {
  return last !== null && follows(last, observation, rule) ? Math.max(0, observation.at - last.at) : 0;
}

function followed(last: LastSeen | null, observation: Observation, rule: TimerRule): LastSeen {
  const newest = newestOf(observation);
  const isThread = last !== null && follows(last, observation, rule);
  return { verdict: observation.verdict, at: isThread ? Math.max(last.at, observation.at) : newest, newest };
}

/** Whether what lies between both was seen to be all of one verdict. */
const follows = (last: LastSeen, observation: Observation, { gapMsMax }: TimerRule): boolean =>
  last.verdict === observation.verdict && newestOf(observation) - last.newest <= gapMsMax;

/** Keeps the state and both sums; what comes next counts from itself on. */
const broken = (timer: Timer): Timer =>
  timer.last === null || timer.last.verdict === "unknown"
    ? timer
    : { ...timer, last: { ...timer.last, verdict: "unknown" } };

/**
 * The timer after a view that can't be trusted: a pending one starts from zero when sight returns; a firing one goes
 * on as it is, and what comes next counts from itself on.
 */
export const untrusted = (timer: Timer): Timer => (timer.state === "pending" ? INACTIVE : broken(timer));

/** The timer of a journal's row. The time since the row was written counts for nothing. */
export const restarted = ({ state, trueMs, clearMs, since }: TimerRow): Timer => ({
  state,
  trueMs,
  clearMs,
  since,
  last: null,
});

/** The row that the journal keeps of a timer; null: it keeps none. */
export function rowOf(policy: string, node: NodeId, timer: Timer): TimerRow | null {
  const { state, trueMs, clearMs, since } = timer;
  return state === "inactive" || since === null ? null : { policy, node, state, trueMs, clearMs, since };
}

/**
 * The timer under a changed rule, for where nothing was done about it yet. A raised `for` that is not reached any more
 * takes a firing one back to pending, or, if it was seen false since, to inactive, as a pending one would be. A lowered
 * one fires nothing by itself: the next look that finds `when` true does.
 */
export function reruled(timer: Timer, rule: TimerRule): Timer {
  if (timer.state !== "firing" || timer.trueMs >= rule.forMs) return timer;
  const isClearing = timer.clearMs > 0 || timer.last?.verdict === "false";
  return isClearing ? INACTIVE : { ...timer, state: "pending" };
}
