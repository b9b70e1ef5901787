import { type DurationMs, formatDuration, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";

/**
 * The clock of all rows of the journal. It goes by the monotonic clock, and continues where the last process stopped. The
 * downtime between them is added once the wall clock and the service's Date agree on the time; either of them alone may
 * have been set wrong, and a jump would end cool-downs, free limits and prune rows.
 *
 *     unchecked ──▶ settled      both clocks agree, or one of them agrees with the journal
 *         └───────▶ disputed ──▶ settled      both agree, or DISAGREEMENT_MS passed
 *
 * While the clocks disagree, time continues from the earlier of the two, or from what the journal shows if that is later.
 */
export interface JournalClock {
  now(): EpochMs;
  /** The instant at which the monotonic clock showed `at`. */
  epochOf(at: MonotonicMs): EpochMs;
  /** Compares the clocks, until the clock is settled. `serviceNow`: by the service's Date; null: not known yet. */
  check(serviceNow: EpochMs | null): void;
  /** Whether it is known how long the daemon was down; until then nothing may be pruned. */
  isSettled(): boolean;
  /** Why no action may be taken; null: nothing speaks against it. */
  problem(): string | null;
}

/** The wall clock and the service's Date agree where they are no further apart: clocks drift without NTP. */
const AGREEMENT_MS: DurationMs = 5 * MINUTE_MS;
/** A dispute holds actions so long: by then what max_actions and the cool-downs count by default has passed. */
const DISAGREEMENT_MS: DurationMs = HOUR_MS;

/** Creates a clock that goes on from `last`, the time that the journal shows; null: the journal is new. */
export function createJournalClock(last: EpochMs | null, clock: Clock, log: Log): JournalClock {
  let offset = (last ?? clock.now()) - clock.monotonic();
  let isSettled = false;
  let disagreesSince: MonotonicMs | null = null;
  let isAdvanced = false;
  let difference: string | null = null;

  const epochOf = (at: MonotonicMs): EpochMs => Math.round(at + offset);
  const now = (): EpochMs => epochOf(clock.monotonic());

  function adoptOffset(at: EpochMs): void {
    offset = (last === null ? at : Math.max(now(), at)) - clock.monotonic();
    isSettled = true;
    disagreesSince = null;
  }

  function check(serviceNow: EpochMs | null): void {
    if (isSettled || serviceNow === null) return;
    const wall = clock.now();
    if (isNear(wall, serviceNow)) {
      adoptOffset(wall);
      return;
    }
    difference = `the wall clock of this machine is ${differenceText(wall - serviceNow)} the service's Date`;
    if (disagreesSince === null) log.error({ difference }, "the wall clock and the service's Date disagree");
    disagreesSince ??= clock.monotonic();
    // A new journal has no times that could be passed over.
    if (last === null) adoptOffset(serviceNow);
    else if (!isAdvanced && (isNear(now(), serviceNow) || isNear(now(), wall))) adoptOffset(now());
    else if (clock.monotonic() - disagreesSince >= DISAGREEMENT_MS) adoptOffset(Math.min(wall, serviceNow));
    else if (!isAdvanced) advanceTo(Math.min(wall, serviceNow));
  }

  /**
   * Adds the downtime by the earlier of the two clocks, which adds no more than the true downtime unless both are wrong.
   * It is added at once, so that a cooldown that starts during the disagreement is not skipped when the disagreement ends.
   */
  function advanceTo(at: EpochMs): void {
    // A Date is exact to a second, and an advance can't be taken back.
    offset = Math.max(now(), at - SECOND_MS) - clock.monotonic();
    isAdvanced = true;
  }

  return {
    now,
    epochOf,
    check,
    isSettled: () => isSettled,
    problem() {
      if (disagreesSince === null) return null;
      const gap = Math.max(SECOND_MS, DISAGREEMENT_MS - (clock.monotonic() - disagreesSince));
      const seconds = Math.ceil(gap / SECOND_MS) * SECOND_MS;
      return `${difference}, and how long the daemon was down is unknown; it ends once they agree, or in ${formatDuration(seconds)}`;
    },
  };
}

const isNear = (one: EpochMs, other: EpochMs): boolean => Math.abs(one - other) <= AGREEMENT_MS;

const differenceText = (ms: number): string =>
  `${formatDuration(Math.round(Math.abs(ms) / MINUTE_MS) * MINUTE_MS)} ${ms > 0 ? "ahead of" : "behind"}`;
