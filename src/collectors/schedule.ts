import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { Clock, Cron } from "../model/ports.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import type { RequestedInterval } from "../scheduling/planner.ts";

/**
 * When a collector runs: so long after it last began, or at the times of a cron schedule. `leastMs`: times sooner than this
 * after the last run began are skipped; absent: none are.
 */
export type Schedule =
  | { readonly kind: "every"; readonly intervalMs: DurationMs }
  | { readonly kind: "cron"; readonly expression: string; readonly minIntervalMs?: DurationMs };

/** What is collected how often; null: not at all. Of details, the interval is the age that none should pass. */
export type Schedules = Readonly<Record<Collector, Schedule | null>>;

/** What schedules stand on. */
export interface ScheduleDeps {
  readonly clock: Clock;
  readonly cron: Cron;
  readonly random: Random;
}

/** The first run is put off by up to this share of the interval, so that collectors don't start as one. */
const JITTER_SHARE = 0.1;
const JITTER_MS_MAX: DurationMs = 2 * SECOND_MS;
/** A wait is looked at again this often, for the plan may have moved under it. */
const SLEEP_STEP_MS_MAX: DurationMs = 10 * SECOND_MS;
/** No nap is shorter: what rounding leaves of a wait would be slept over and over. */
const SLEEP_STEP_MS_MIN: DurationMs = 1;
/** A failed run of a bell is tried again after this, doubled each time, until the bell rings. */
const FAILED_RUN_RETRY_MS: DurationMs = MINUTE_MS;

/** When the last run of a job began, on both clocks, and how many runs in a row have failed since one succeeded. */
export interface LastStart {
  readonly monotonic: MonotonicMs;
  readonly epoch: EpochMs;
  readonly failures: number;
}

/** When a job runs. The cadence and the first wait are asked for anew while it waits. */
export interface JobSchedule {
  readonly schedule: () => Schedule;
  /** Before the first run. */
  readonly firstWait: () => DurationMs;
  /** The last run, where this goes on with what ran before; absent or null: there was none. */
  readonly lastStart?: LastStart | null;
  /** Told of each run that came to its end. */
  readonly onStart?: (begun: LastStart) => void;
}

/**
 * Runs `job` again and again until `signal` aborts: once soon after the start or when the last run makes it due, then by its
 * cadence. A run never overlaps the one before; one that took longer than the interval is followed at once.
 * `job` says whether it succeeded, and never throws.
 */
export async function runOnSchedule(
  deps: ScheduleDeps,
  { schedule: cadence, firstWait, lastStart: last = null, onStart: onRun = () => {} }: JobSchedule,
  job: (signal: AbortSignal) => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = deps;
  let lastStart = last;
  if (lastStart === null) await clock.sleep(startJitterMs(cadence()) * deps.random(), signal);
  else await sleepUntilDue(deps, cadence, lastStart, signal);
  for (let wait = firstWait(); wait > 0 && !signal.aborted; wait = firstWait()) await sleepStep(clock, wait, signal);
  while (!signal.aborted) {
    const [monotonic, epoch] = [clock.monotonic(), clock.now()];
    const succeeded = await job(signal);
    // A run that was cut off is made up for by the next to go on from here.
    if (!succeeded && signal.aborted) return;
    lastStart = { monotonic, epoch, failures: succeeded ? 0 : (lastStart?.failures ?? 0) + 1 };
    onRun(lastStart);
    await sleepUntilDue(deps, cadence, lastStart, signal);
  }
}

function startJitterMs(cadence: Schedule): DurationMs {
  const spread = cadence.kind === "every" ? cadence.intervalMs * JITTER_SHARE : JITTER_MS_MAX;
  return Math.min(JITTER_MS_MAX, spread);
}

async function sleepUntilDue(
  timing: ScheduleDeps,
  cadence: () => Schedule,
  begun: LastStart,
  signal: AbortSignal,
): Promise<void> {
  let { epoch } = begun;
  for (;;) {
    // A wall clock that was set back must not wait for the moment it once showed.
    epoch = Math.min(epoch, timing.clock.now());
    const wait = waitUntilDue(timing, cadence(), { ...begun, epoch });
    if (signal.aborted || wait <= 0) return;
    await sleepStep(timing.clock, wait, signal);
  }
}

/** Sleeps for a part of a wait that is to be looked at again. */
export const sleepStep = (clock: Clock, wait: DurationMs, signal: AbortSignal): Promise<void> =>
  clock.sleep(Math.min(SLEEP_STEP_MS_MAX, Math.max(SLEEP_STEP_MS_MIN, wait)), signal);

function waitUntilDue(
  { clock, cron }: ScheduleDeps,
  cadence: Schedule,
  { monotonic, epoch, failures }: LastStart,
): DurationMs {
  const sinceBegan = clock.monotonic() - monotonic;
  if (cadence.kind === "every") return cadence.intervalMs - sinceBegan;
  const { expression, minIntervalMs = 0 } = cadence;
  // The last run began a moment after its time: a time that is due exactly is not skipped for that.
  const nextRunAt = Number.isFinite(minIntervalMs)
    ? cron.nextAfter(expression, epoch + Math.max(0, minIntervalMs - SECOND_MS))
    : null;
  const untilNextRun = nextRunAt === null ? Number.POSITIVE_INFINITY : nextRunAt - clock.now();
  // Where times are skipped for the limits' sake, a failed run is not tried again before the next.
  if (failures === 0 || minIntervalMs > 0) return untilNextRun;
  return Math.min(untilNextRun, FAILED_RUN_RETRY_MS * 2 ** Math.min(failures - 1, 10) - sinceBegan);
}

/** How far apart the runs of a cadence are; of a bell: its next two rings. */
export function schedulePeriodMs(cadence: Schedule, timing: Pick<ScheduleDeps, "clock" | "cron">): DurationMs {
  if (cadence.kind === "every") return cadence.intervalMs;
  const next = timing.cron.nextAfter(cadence.expression, timing.clock.now());
  const after = next === null ? null : timing.cron.nextAfter(cadence.expression, next);
  return next === null || after === null ? Number.POSITIVE_INFINITY : after - next;
}

/** What a planner is to fit into the limits. */
export function requestedIntervalsOf(
  cadences: Schedules,
  timing: Pick<ScheduleDeps, "clock" | "cron">,
): Readonly<Record<Collector, RequestedInterval | null>> {
  const requestedInterval = (cadence: Schedule | null): RequestedInterval | null =>
    cadence === null ? null : { intervalMs: schedulePeriodMs(cadence, timing), isCron: cadence.kind === "cron" };
  return Object.fromEntries(
    COLLECTORS.map((collector) => [collector, requestedInterval(cadences[collector])]),
  ) as unknown as Readonly<Record<Collector, RequestedInterval | null>>;
}
