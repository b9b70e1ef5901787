import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { Wish } from "../budget/planner.ts";
import type { Bell, Clock } from "../model/ports.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";

/** When a collector runs: so long after it last began, or when a bell rings. */
export type Cadence =
  | { readonly kind: "every"; readonly intervalMs: DurationMs }
  | { readonly kind: "cron"; readonly expression: string };

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

/** When a job runs; both are asked for anew while it waits. */
export interface Rhythm {
  readonly cadence: () => Cadence;
  /** Before the first run. */
  readonly firstWait: () => DurationMs;
}

/**
 * Runs `job` again and again until `signal` aborts: once soon after the start, then by its cadence. A run never overlaps the one before; one that took longer than the interval is followed at once.
 * `job` says whether it succeeded, and never throws.
 */
export async function repeat(
  timing: Timing,
  { cadence, firstWait }: Rhythm,
  job: (signal: AbortSignal) => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  const first = cadence();
  const spread = first.kind === "every" ? first.intervalMs * JITTER_SHARE : JITTER_MS_MAX;
  await timing.clock.sleep(Math.min(JITTER_MS_MAX, spread) * timing.random(), signal);
  for (let wait = firstWait(); wait > 0 && !signal.aborted; wait = firstWait()) await nap(timing.clock, wait, signal);
  let failures = 0;
  while (!signal.aborted) {
    const began = { monotonic: timing.clock.monotonic(), epoch: timing.clock.now() };
    failures = (await job(signal)) ? 0 : failures + 1;
    for (;;) {
      // A wall clock that was set back must not wait for the moment it once showed.
      began.epoch = Math.min(began.epoch, timing.clock.now());
      const wait = waitOf(timing, cadence(), began, failures);
      if (signal.aborted || wait <= 0) break;
      await nap(timing.clock, wait, signal);
    }
  }
}

/** Sleeps for a part of a wait that is to be looked at again. */
export const nap = (clock: Clock, wait: DurationMs, signal: AbortSignal): Promise<void> =>
  clock.sleep(Math.min(NAP_MS_MAX, Math.max(NAP_MS_MIN, wait)), signal);

function waitOf(
  timing: Timing,
  cadence: Cadence,
  began: { monotonic: number; epoch: number },
  failures: number,
): DurationMs {
  const sinceBegan = timing.clock.monotonic() - began.monotonic;
  if (cadence.kind === "every") return cadence.intervalMs - sinceBegan;
  const rings = timing.bell.next(cadence.expression, began.epoch);
  const untilRing = rings === null ? Number.POSITIVE_INFINITY : rings - timing.clock.now();
  return failures === 0 ? untilRing : Math.min(untilRing, RETRY_MS * 2 ** Math.min(failures - 1, 10) - sinceBegan);
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
