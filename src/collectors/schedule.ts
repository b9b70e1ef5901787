import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { Wish } from "../scheduling/planner.ts";
import type { Bell, Clock } from "../model/ports.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

/**
 * When a collector runs: so long after it last began, or at the times of a cron schedule. `leastMs`: times sooner than this
 * after the last run began are skipped; absent: none are.
 */
export type Cadence =
  | { readonly kind: "every"; readonly intervalMs: DurationMs }
  | { readonly kind: "cron"; readonly expression: string; readonly leastMs?: DurationMs };

/** What is collected how often; null: not at all. Of details, the interval is the age that none should pass. */
export type Cadences = Readonly<Record<Collector, Cadence | null>>;

/** What schedules stand on. */
export interface Timing {
  readonly clock: Clock;
  readonly bell: Bell;
  readonly random: Random;
}

/** The first run is put off by up to this share of the interval, so that collectors don't start as one. */
const JITTER_SHARE = 0.1;
const JITTER_MS_MAX: DurationMs = 2 * SECOND_MS;
/** A wait is looked at again this often, for the plan may have moved under it. */
const NAP_MS_MAX: DurationMs = 10 * SECOND_MS;
/** No nap is shorter: what rounding leaves of a wait would be slept over and over. */
const NAP_MS_MIN: DurationMs = 1;
/** A failed run of a bell is tried again after this, doubled each time, until the bell rings. */
const RETRY_MS: DurationMs = MINUTE_MS;

/** When the last run of a job began, on both clocks, and how many runs in a row have failed since one succeeded. */
export interface LastBegun {
  readonly monotonic: MonotonicMs;
  readonly epoch: EpochMs;
  readonly failures: number;
}

/** When a job runs. The cadence and the first wait are asked for anew while it waits. */
export interface Rhythm {
  readonly cadence: () => Cadence;
  /** Before the first run. */
  readonly firstWait: () => DurationMs;
  /** The last run, where this goes on with what ran before; absent or null: there was none. */
  readonly last?: LastBegun | null;
  /** Told of each run that came to its end. */
  readonly onRun?: (begun: LastBegun) => void;
}

/**
 * Runs `job` again and again until `signal` aborts: once soon after the start or when the last run makes it due, then by its
 * cadence. A run never overlaps the one before; one that took longer than the interval is followed at once.
 * `job` says whether it succeeded, and never throws.
 */
export async function repeat(
  timing: Timing,
  { cadence, firstWait, last = null, onRun = () => {} }: Rhythm,
  job: (signal: AbortSignal) => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = timing;
  let begun = last;
  if (begun === null) await clock.sleep(jitterOf(cadence()) * timing.random(), signal);
  else await untilDue(timing, cadence, begun, signal);
  for (let wait = firstWait(); wait > 0 && !signal.aborted; wait = firstWait()) await nap(clock, wait, signal);
  while (!signal.aborted) {
    const [monotonic, epoch] = [clock.monotonic(), clock.now()];
    const succeeded = await job(signal);
    // A run that was cut off is made up for by the next to go on from here.
    if (!succeeded && signal.aborted) return;
    begun = { monotonic, epoch, failures: succeeded ? 0 : (begun?.failures ?? 0) + 1 };
    onRun(begun);
    await untilDue(timing, cadence, begun, signal);
  }
}

function jitterOf(cadence: Cadence): DurationMs {
  const spread = cadence.kind === "every" ? cadence.intervalMs * JITTER_SHARE : JITTER_MS_MAX;
  return Math.min(JITTER_MS_MAX, spread);
}

async function untilDue(timing: Timing, cadence: () => Cadence, begun: LastBegun, signal: AbortSignal): Promise<void> {
  let { epoch } = begun;
  for (;;) {
    // A wall clock that was set back must not wait for the moment it once showed.
    epoch = Math.min(epoch, timing.clock.now());
    const wait = waitOf(timing, cadence(), { ...begun, epoch });
    if (signal.aborted || wait <= 0) return;
    await nap(timing.clock, wait, signal);
  }
}

/** Sleeps for a part of a wait that is to be looked at again. */
export const nap = (clock: Clock, wait: DurationMs, signal: AbortSignal): Promise<void> =>
  clock.sleep(Math.min(NAP_MS_MAX, Math.max(NAP_MS_MIN, wait)), signal);

function waitOf({ clock, bell }: Timing, cadence: Cadence, { monotonic, epoch, failures }: LastBegun): DurationMs {
  const sinceBegan = clock.monotonic() - monotonic;
  if (cadence.kind === "every") return cadence.intervalMs - sinceBegan;
  const { expression, leastMs = 0 } = cadence;
  // The last run began a moment after its time: a time that is due exactly is not skipped for that.
  const rings = Number.isFinite(leastMs) ? bell.next(expression, epoch + Math.max(0, leastMs - SECOND_MS)) : null;
  const untilRing = rings === null ? Number.POSITIVE_INFINITY : rings - clock.now();
  // Where times are skipped for the limits' sake, a failed run is not tried again before the next.
  if (failures === 0 || leastMs > 0) return untilRing;
  return Math.min(untilRing, RETRY_MS * 2 ** Math.min(failures - 1, 10) - sinceBegan);
}

/** How far apart the runs of a cadence are; of a bell: its next two rings. */
export function periodOf(cadence: Cadence, timing: Pick<Timing, "clock" | "bell">): DurationMs {
  if (cadence.kind === "every") return cadence.intervalMs;
  const next = timing.bell.next(cadence.expression, timing.clock.now());
  const after = next === null ? null : timing.bell.next(cadence.expression, next);
  return next === null || after === null ? Number.POSITIVE_INFINITY : after - next;
}

/** What a planner is to fit into the limits. */
export function wishesOf(
  cadences: Cadences,
  timing: Pick<Timing, "clock" | "bell">,
): Readonly<Record<Collector, Wish | null>> {
  const wish = (cadence: Cadence | null): Wish | null =>
    cadence === null ? null : { intervalMs: periodOf(cadence, timing), rung: cadence.kind === "cron" };
  return Object.fromEntries(
    COLLECTORS.map((collector) => [collector, wish(cadences[collector])]),
  ) as unknown as Readonly<Record<Collector, Wish | null>>;
}
