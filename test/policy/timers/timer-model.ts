import type { Observation, TimerRule } from "../../../src/policy/timers/timer.ts";

/** One look, as the model keeps it. */
export interface Look extends Observation {
  readonly isFrozen?: boolean;
}

/** What a timer shows of itself. */
export interface Shown {
  readonly state: "inactive" | "pending" | "firing";
  readonly trueMs: number;
  readonly clearMs: number;
  readonly since: number | null;
}

const inactive: Shown = { state: "inactive", trueMs: 0, clearMs: 0, since: null };

/** What a look comes to within its run. */
type Entry = {
  readonly kind: "true" | "false" | "break" | "again_true" | "again_false" | "nothing";
  readonly look: Look;
};

/**
 * The timer written the other way round: it keeps every look there ever was, and reckons from scratch. Runs are found
 * first; within a run looks are sorted into kinds; time is the extent of each unbroken thread of equal looks.
 */
export function shownAfter(looks: readonly Look[], rule: TimerRule): Shown {
  let start = looks.findIndex(({ verdict }) => verdict === "true");
  while (start >= 0) {
    const run = entriesOf(looks.slice(start));
    const end = run.findIndex((_, index) => isOver(run.slice(0, index + 1), rule));
    if (end < 0) return shownOf(run, rule);
    const next = looks.slice(start + end + 1).findIndex(({ verdict }) => verdict === "true");
    start = next < 0 ? -1 : start + end + 1 + next;
  }
  return inactive;
}

const newestOf = ({ at, newest }: Look) => newest ?? at;

const isFrozenFalse = ({ verdict, isFrozen }: Look) => verdict === "false" && isFrozen === true;

function entriesOf(looks: readonly Look[]): Entry[] {
  const entries: Entry[] = [];
  for (const look of looks) entries.push({ kind: kindOf(look, entries), look });
  return entries;
}

function kindOf(look: Look, before: readonly Entry[]): Entry["kind"] {
  const { verdict } = look;
  if (verdict === "unknown") return "break";
  const seen = before.filter((entry) => entry.look.verdict !== "unknown");
  const newest = Math.max(Number.NEGATIVE_INFINITY, ...seen.map((entry) => newestOf(entry.look)));
  if (newestOf(look) > newest) return verdict;
  if (newestOf(look) < newest) return "nothing";
  const latest = before.findLast(({ kind }) => kind !== "nothing");
  return latest?.kind === verdict && !isFrozenFalse(look) ? "nothing" : `again_${verdict}`;
}

/** Whether the run ends with its last look, given that it did not end before. */
function isOver(run: readonly Entry[], rule: TimerRule): boolean {
  const last = run.at(-1)!;
  const before = run.slice(0, -1);
  if (!hasFired(before, rule)) return last.kind === "false" || last.kind === "again_false";
  return last.kind === "false" && !isFrozenFalse(last.look) && clearMsOf(run, rule) >= rule.clearForMs;
}

function shownOf(run: readonly Entry[], rule: TimerRule): Shown {
  const state = hasFired(run, rule) ? "firing" : "pending";
  return { state, trueMs: countedMs(run, "true", rule), clearMs: clearMsOf(run, rule), since: run[0]!.look.now };
}

const hasFired = (run: readonly Entry[], rule: TimerRule) =>
  run.some(({ kind }, index) => kind === "true" && countedMs(run.slice(0, index + 1), "true", rule) >= rule.forMs);

function clearMsOf(run: readonly Entry[], rule: TimerRule): number {
  const reset = run.findLastIndex(({ kind }) => kind === "true" || kind === "again_true");
  return countedMs(run.slice(reset + 1), "false", rule);
}

/** Sum of what the threads of one verdict span: from where the first was known to the last datum of all of them. */
function countedMs(run: readonly Entry[], verdict: "true" | "false", rule: TimerRule): number {
  const threads: Look[][] = [];
  let previous: Look | null = null;
  for (const { kind, look } of run) {
    if (kind === "nothing") continue;
    const isOne = kind === verdict && !isFrozenFalse(look);
    const isNear: boolean = previous !== null && newestOf(look) - newestOf(previous) <= rule.gapMsMax;
    if (isOne && isNear) threads.at(-1)!.push(look);
    else if (isOne) threads.push([look]);
    previous = isOne ? look : null;
  }
  return threads.reduce((sum, [first, ...rest]) => {
    const reached = Math.max(newestOf(first!), ...rest.map(({ at }) => at));
    return sum + reached - newestOf(first!);
  }, 0);
}
