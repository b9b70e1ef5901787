import { byName } from "../base/by-name.ts";
import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { Schedule } from "../config/schema/config.ts";
import type { Clock } from "../model/ports.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { nextCronTime } from "../platform/cron.ts";
import type { RequestedInterval } from "../scheduling/polling-capacity.ts";

/**
 * A schedule under the plan. Times of a cron schedule less than `minIntervalMs` after the last start are skipped; if it
 * is absent, none are.
 */
export type PlannedSchedule = Schedule & { readonly minIntervalMs?: DurationMs };

/** Schedule of each collector, or null if not collected. For details, the interval is the maximum age. */
export type Schedules = Readonly<Record<Collector, Schedule | null>>;

/** Dependencies of schedules. */
interface ScheduleDeps {
  readonly clock: Clock;
  readonly random: Random;
}

/** The first run is delayed by up to this time, so that collectors do not always start in the same order. */
const START_JITTER_MS_MAX: DurationMs = SECOND_MS / 4;
/** A wait is recomputed this often, since the plan may have changed. */
const SLEEP_STEP_MS_MAX: DurationMs = 10 * SECOND_MS;
/** Shortest sleep, so that rounding errors don't cause a busy loop. */
const SLEEP_STEP_MS_MIN: DurationMs = 1;
/**
 * A failed run of a cron schedule is retried after this time, doubled with each failure, until the next scheduled time.
 */
const FAILED_RUN_RETRY_MS: DurationMs = MINUTE_MS;

/** Enough for the mean of a schedule that is denser at some times of the day, and computed in a few milliseconds. */
const PERIODS_MAX = 100;
/** Schedules may differ by the day of the week or of the month. */
const PERIODS_MS_MAX: DurationMs = 32 * DAY_MS;

/** When the last run of a collector started, on both clocks, and how many runs have failed since the last success. */
export interface LastStart {
  readonly monotonic: MonotonicMs;
  readonly epoch: EpochMs;
  readonly failures: number;
}

/** When a collector runs. Its functions are called again while it waits. */
interface RunSchedule {
  readonly schedule: () => PlannedSchedule;
  /** Minimum time between two starts, regardless of the schedule. */
  readonly minIntervalMs: () => DurationMs;
  /** Wait before the first run. */
  readonly firstWait: () => DurationMs;
  /** The last run before this schedule started, or null if there is none. */
  readonly lastStart: LastStart | null;
  /** Called after each run with its start. */
  readonly onRun: (lastStart: LastStart) => void;
}

/**
 * Calls `run` until `signal` aborts: first shortly after the start, or when it is due after `lastStart`, then by the
 * schedule. Runs never overlap; a run that takes longer than the interval is followed immediately by the next. `run`
 * returns whether it succeeded, and never throws.
 */
export async function runOnSchedule(
  deps: ScheduleDeps,
  runSchedule: RunSchedule,
  run: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = deps;
  const { firstWait, onRun } = runSchedule;
  let { lastStart } = runSchedule;
  if (lastStart === null) await clock.sleep(START_JITTER_MS_MAX * deps.random(), signal);
  else await sleepUntilDue(deps, runSchedule, lastStart, signal);
  for (let wait = firstWait(); wait > 0 && !signal.aborted; wait = firstWait()) await sleepStep(clock, wait, signal);
  while (!signal.aborted) {
    const [monotonic, epoch] = [clock.monotonic(), clock.now()];
    const succeeded = await run();
    // An aborted run is not recorded: the next schedule repeats it.
    if (!succeeded && signal.aborted) return;
    lastStart = { monotonic, epoch, failures: succeeded ? 0 : (lastStart?.failures ?? 0) + 1 };
    onRun(lastStart);
    await sleepUntilDue(deps, runSchedule, lastStart, signal);
  }
}

async function sleepUntilDue(
  deps: ScheduleDeps,
  { schedule, minIntervalMs }: RunSchedule,
  lastStart: LastStart,
  signal: AbortSignal,
): Promise<void> {
  let { epoch } = lastStart;
  for (;;) {
    // After the clock was set back, do not wait for the time it showed before.
    epoch = Math.min(epoch, deps.clock.now());
    const sinceStart = deps.clock.monotonic() - lastStart.monotonic;
    const wait = Math.max(waitUntilDue(deps, schedule(), { ...lastStart, epoch }), minIntervalMs() - sinceStart);
    if (signal.aborted || wait <= 0) return;
    await sleepStep(deps.clock, wait, signal);
  }
}

/** Sleeps for at most one step of `wait`; the caller then recomputes it. */
export const sleepStep = (clock: Clock, wait: DurationMs, signal: AbortSignal): Promise<void> =>
  clock.sleep(Math.min(SLEEP_STEP_MS_MAX, Math.max(SLEEP_STEP_MS_MIN, wait)), signal);

function waitUntilDue(
  { clock }: ScheduleDeps,
  schedule: PlannedSchedule,
  { monotonic, epoch, failures }: LastStart,
): DurationMs {
  const sinceStart = clock.monotonic() - monotonic;
  if (schedule.kind === "every") return schedule.intervalMs - sinceStart;
  const { expression, minIntervalMs = 0 } = schedule;
  // The last run started slightly after its scheduled time; do not skip a time that is exactly due.
  const nextRunAt = Number.isFinite(minIntervalMs)
    ? nextCronTime(expression, epoch + Math.max(0, minIntervalMs - SECOND_MS))
    : null;
  const untilNextRun = nextRunAt === null ? Number.POSITIVE_INFINITY : nextRunAt - clock.now();
  // If times are skipped because of limits, a failed run is not retried before the next.
  if (failures === 0 || minIntervalMs > 0) return untilNextRun;
  return Math.min(untilNextRun, FAILED_RUN_RETRY_MS * 2 ** Math.min(failures - 1, 10) - sinceStart);
}

/**
 * Returns the time between two runs of a schedule; for cron, the mean of its next {@link PERIODS_MAX} periods within
 * {@link PERIODS_MS_MAX}, in whole seconds, because a single one may be a night or a weekend without runs.
 */
export function schedulePeriodMs(schedule: Schedule, { clock }: Pick<ScheduleDeps, "clock">): DurationMs {
  if (schedule.kind === "every") return schedule.intervalMs;
  const first = nextCronTime(schedule.expression, clock.now());
  if (first === null) return Number.POSITIVE_INFINITY;
  let last = first;
  let periods = 0;
  for (; periods < PERIODS_MAX; periods++) {
    const next = nextCronTime(schedule.expression, last);
    if (next === null || (periods > 0 && next - first > PERIODS_MS_MAX)) break;
    last = next;
  }
  return periods === 0 ? Number.POSITIVE_INFINITY : Math.round((last - first) / periods / SECOND_MS) * SECOND_MS;
}

/** Returns the requested interval of each collector, or null if not collected. */
export function requestedIntervalsOf(
  schedules: Schedules,
  deps: Pick<ScheduleDeps, "clock">,
): Readonly<Record<Collector, RequestedInterval | null>> {
  return byName(COLLECTORS, (collector) => {
    const schedule = schedules[collector];
    return schedule && { intervalMs: schedulePeriodMs(schedule, deps), isCron: schedule.kind === "cron" };
  });
}
