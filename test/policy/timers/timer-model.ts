import type { Observation, TimerDurations } from "../../../src/policy/timer.ts";

/** An observation of the model. */
export interface ModelObservation extends Observation {
  readonly isFrozen?: boolean;
}

/** The compared part of a timer. */
export interface TimerView {
  readonly state: "inactive" | "pending" | "firing";
  readonly trueMs: number;
  readonly clearMs: number;
  readonly since: number | null;
}

const inactive: TimerView = { state: "inactive", trueMs: 0, clearMs: 0, since: null };

/** An observation with its effect within a run. */
type ModelEntry = {
  readonly kind: "true" | "false" | "break" | "again_true" | "again_false" | "nothing";
  readonly observation: ModelObservation;
};

/**
 * An independent model of the timer that computes everything from all observations: it finds runs, classifies the
 * observations of a run, and adds up the time that each uninterrupted sequence of equal observations spans.
 */
export function modelTimerAfter(observations: readonly ModelObservation[], durations: TimerDurations): TimerView {
  let start = observations.findIndex(({ verdict }) => verdict === "true");
  while (start >= 0) {
    const run = entriesOf(observations.slice(start));
    const end = run.findIndex((_, index) => isOver(run.slice(0, index + 1), durations));
    if (end < 0) return modelTimerOf(run, durations);
    const next = observations.slice(start + end + 1).findIndex(({ verdict }) => verdict === "true");
    start = next < 0 ? -1 : start + end + 1 + next;
  }
  return inactive;
}

const isFrozenFalse = ({ verdict, isFrozen }: ModelObservation) => verdict === "false" && isFrozen === true;

function entriesOf(observations: readonly ModelObservation[]): ModelEntry[] {
  const entries: ModelEntry[] = [];
  for (const observation of observations) entries.push({ kind: kindOf(observation, entries), observation });
  return entries;
}

function kindOf(observation: ModelObservation, before: readonly ModelEntry[]): ModelEntry["kind"] {
  const { verdict } = observation;
  if (verdict === "unknown") return "break";
  const seen = before.filter((entry) => entry.observation.verdict !== "unknown");
  const newest = Math.max(Number.NEGATIVE_INFINITY, ...seen.map((entry) => entry.observation.newest));
  if (observation.newest > newest) return verdict;
  if (observation.newest < newest) return "nothing";
  const latest = before.findLast(({ kind }) => kind !== "nothing");
  return latest?.kind === verdict && !isFrozenFalse(observation) ? "nothing" : `again_${verdict}`;
}

/** Returns whether a run that has not ended before ends with its last observation. */
function isOver(run: readonly ModelEntry[], durations: TimerDurations): boolean {
  const last = run.at(-1)!;
  const before = run.slice(0, -1);
  if (!hasFired(before, durations)) return last.kind === "false" || last.kind === "again_false";
  return last.kind === "false" && !isFrozenFalse(last.observation) && clearMsOf(run, durations) >= durations.clearForMs;
}

function modelTimerOf(run: readonly ModelEntry[], durations: TimerDurations): TimerView {
  const state = hasFired(run, durations) ? "firing" : "pending";
  const falseAt = run.findLastIndex(({ kind }) => kind === "false" || kind === "again_false");
  return {
    state,
    trueMs: coveredMs(run.slice(falseAt + 1), "true", durations),
    clearMs: clearMsOf(run, durations),
    since: run[0]!.observation.now,
  };
}

const hasFired = (run: readonly ModelEntry[], durations: TimerDurations) =>
  run.some(
    ({ kind }, index) => kind === "true" && coveredMs(run.slice(0, index + 1), "true", durations) >= durations.forMs,
  );

function clearMsOf(run: readonly ModelEntry[], durations: TimerDurations): number {
  const reset = run.findLastIndex(({ kind }) => kind === "true" || kind === "again_true");
  return coveredMs(run.slice(reset + 1), "false", durations);
}

/**
 * Sum of the time that the sequences of one verdict span, each from its first observation to its last data. What is
 * unknown in between ends a sequence of true ones only.
 */
function coveredMs(run: readonly ModelEntry[], verdict: "true" | "false", durations: TimerDurations): number {
  const sequences: ModelObservation[][] = [];
  let previous: ModelObservation | null = null;
  for (const { kind, observation } of run) {
    if (kind === "nothing") continue;
    const isFalseAgain = kind === "again_false" && previous !== null;
    if (verdict === "false" && (kind === "break" || isFalseAgain) && observation.isFrozen !== true) continue;
    const isOne = kind === verdict && !isFrozenFalse(observation);
    const gapMsMax = verdict === "true" ? durations.gapMsMax : Number.POSITIVE_INFINITY;
    const isNear: boolean = previous !== null && observation.newest - previous.newest <= gapMsMax;
    if (isOne && isNear) sequences.at(-1)!.push(observation);
    else if (isOne) sequences.push([observation]);
    previous = isOne ? observation : null;
  }
  return sequences.reduce((sum, [first, ...rest]) => {
    const reached = Math.max(first!.newest, ...rest.map(({ at }) => at));
    return sum + reached - first!.newest;
  }, 0);
}
