import {
  type DurationMs,
  formatDuration,
  formatSecondsLeft,
  HOUR_MS,
  MINUTE_MS,
  SECOND_MS,
} from "../../base/duration.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";

/** Key of the fact that holds the last time on this clock, which keeps it from going back. Every commit changes it. */
export const CLOCK_FACT = "remediation.clock";
/** Key of the fact that holds {@link JournalClock.uncertainUntil}. Absent if the clock was never behind. */
export const CLOCK_UNCERTAIN_FACT = "remediation.clock_uncertain_until";
/** Key of the fact that holds {@link JournalClock.behindSince}. Absent if the clock is right. */
export const CLOCK_BEHIND_FACT = "remediation.clock_behind_since";
/** Key of the fact that holds {@link JournalClock.lagMs}. Absent if it never lagged. */
export const CLOCK_LAG_FACT = "remediation.clock_lag";

/** The wall clock and the service's Date agree if they differ by at most this much, since clocks drift without NTP. */
const AGREEMENT_MS: DurationMs = 5 * MINUTE_MS;
/**
 * Time for which a disagreement or a correction holds actions. By then the default times of max_actions and of the
 * cooldowns have passed.
 */
const DISAGREEMENT_MS: DurationMs = HOUR_MS;
/**
 * If the wall clock changes by this much relative to the monotonic clock, the machine may have been suspended. A shorter
 * suspension makes no data too old.
 */
const SUSPENSION_MS_MIN: DurationMs = MINUTE_MS;
/** If it changes this often within this time, something keeps setting it, and each change begins the hold again. */
const WALL_CHANGES_MIN = 3;
const WALL_CHANGES_MS: DurationMs = HOUR_MS;

/**
 * The clock of all rows of the journal. It advances with the monotonic clock, and continues where the last process
 * stopped. The downtime is added once the wall clock and the service's Date agree. Either of them alone may be wrong,
 * and a jump would end cooldowns, free limits and prune rows.
 *
 *     unchecked ──▶ settled               the clocks agree, or one of them agrees with the journal
 *         └───────▶ disputed ──▶ settled  the clocks agree, or DISAGREEMENT_MS has passed
 *
 * The monotonic clock stops while the machine is suspended. Once the other two agree on a time that is more than
 * AGREEMENT_MS later, this one follows them. Until then it lags, even after a restart, because catching up would
 * shorten what has begun since the suspension.
 *
 * While the clocks disagree, time continues from the earlier of the two, or from what the journal shows if that is
 * later. The clock may be behind from then on. Once a later start corrects it, times in the journal seem to be longer
 * ago than they are. Times that it gave since `behindSince` are then moved by as much as it advances.
 */
export class JournalClock {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #isNew: boolean;
  /** The first time of this process. Every time in the journal is before it. */
  readonly openedAt: EpochMs;
  readonly #openedAtMonotonic: MonotonicMs;
  #offset: number;
  #isSettled = false;
  #disagreesSince: MonotonicMs | null = null;
  /** How the clocks disagree, or null if they never did. */
  #difference: string | null = null;
  #isDowntimeUnknown = false;
  #uncertainUntil: EpochMs;
  readonly #behindSince: EpochMs;
  /** When the clocks last agreed with this one, which was before a suspension, or null if they have not. */
  #agreedAt: EpochMs | null = null;
  #lagMs: DurationMs;
  /** How far the wall clock is ahead of the monotonic clock, as last compared. */
  #wallOffset: number;
  /** Recent times at which it changed, oldest first. Each counts, because a later one may undo that of a suspension. */
  #wallChanges: readonly MonotonicMs[] = [];

  /** Continues with the facts of the journal. */
  constructor(facts: ReadonlyMap<string, string>, clock: Clock, log: Log) {
    const journaled = (key: string) => (facts.has(key) ? Number(facts.get(key)) : null);
    const last = journaled(CLOCK_FACT);
    this.#clock = clock;
    this.#log = log;
    this.#isNew = last === null;
    this.openedAt = last === null ? clock.now() : last + 1;
    this.#openedAtMonotonic = clock.monotonic();
    this.#offset = this.openedAt - this.#openedAtMonotonic;
    this.#uncertainUntil = journaled(CLOCK_UNCERTAIN_FACT) ?? Number.NEGATIVE_INFINITY;
    this.#behindSince = journaled(CLOCK_BEHIND_FACT) ?? this.openedAt;
    this.#lagMs = journaled(CLOCK_LAG_FACT) ?? 0;
    this.#wallOffset = clock.now() - clock.monotonic();
  }

  now(): EpochMs {
    // Detects a suspension before anything that is read now is used.
    this.suspendedAt();
    return this.epochOf(this.#clock.monotonic());
  }

  /** Returns the time of this clock when the monotonic clock showed `at`. */
  epochOf(at: MonotonicMs): EpochMs {
    return Math.round(at + this.#offset);
  }

  /** Does the same, but returns the first time of this process for all earlier ones, even once the downtime is known. */
  epochSinceOpened(at: MonotonicMs): EpochMs {
    return at < this.#openedAtMonotonic ? this.openedAt : this.epochOf(at);
  }

  /** Returns whether the length of the downtime is known. Until then nothing may be pruned. */
  isSettled(): boolean {
    return this.#isSettled;
  }

  /**
   * Returns whether more time may have passed since `at` than this clock shows: it was before a downtime of unknown
   * length, or before the machine was, or may have been, suspended.
   */
  isAgeUnknown(at: EpochMs): boolean {
    return (this.#isDowntimeUnknown && at < this.openedAt) || at <= this.epochOf(this.suspendedAt());
  }

  /**
   * Returns when a suspension of the machine, or what may have been one, was last detected; -Infinity if never. It shows
   * in the wall clock, which is compared with the monotonic clock each time that this clock is read.
   */
  suspendedAt(): MonotonicMs {
    const monotonic = this.#clock.monotonic();
    const wallOffset = this.#clock.now() - monotonic;
    if (Math.abs(wallOffset - this.#wallOffset) > SUSPENSION_MS_MIN)
      this.#wallChanges = [...this.#recentWallChanges(), monotonic];
    this.#wallOffset = wallOffset;
    return this.#wallChanges.at(-1) ?? Number.NEGATIVE_INFINITY;
  }

  /**
   * Returns the time until which times in the journal may seem to be longer ago than they are. It is Infinity if the
   * clock may be behind and was not corrected yet. It must be journaled for the next process.
   */
  uncertainUntil(): EpochMs {
    return this.#uncertainUntil;
  }

  /**
   * Returns since when, on this clock, it may be behind, or null if it is right. It is behind by the downtime until it
   * is settled. It must be journaled for the next process.
   */
  behindSince(): EpochMs | null {
    return this.#isSettled && this.#uncertainUntil !== Number.POSITIVE_INFINITY ? null : this.#behindSince;
  }

  /** Returns by how much this clock lags behind those of the others that agree with it. It must be journaled. */
  lagMs(): DurationMs {
    return this.#lagMs;
  }

  /**
   * Compares the clocks, and remembers when they agree with this one and by how much it lags. Returns since when, on this
   * clock, it is behind because the machine was suspended, or null if it is not. `serviceNow` is the time by the service's
   * Date, or null if not known.
   */
  checkSuspension(serviceNow: EpochMs | null): EpochMs | null {
    const wall = this.#clock.now();
    if (!this.#isSettled || serviceNow === null) return null;
    const isAgreed = isNear(wall, serviceNow);
    if (isAgreed && Math.min(wall, serviceNow) - this.now() > AGREEMENT_MS) return this.#agreedAt;
    const near = this.#near(wall, serviceNow);
    if (near.length > 0) this.#lagMs = Math.max(0, Math.min(...near) - this.now());
    if (isAgreed && this.#uncertainUntil !== Number.POSITIVE_INFINITY) this.#agreedAt = this.now();
    return null;
  }

  /**
   * Returns why no action may be taken because the machine was, or may have been, suspended, or null if it was not. Data
   * from before a suspension looks fresh. No node was listed before `observedFrom`, and responses last agreed on
   * `serviceNow` at `agreedAt`; null if there was no walk, or they never did.
   */
  suspensionProblem(serviceNow: EpochMs | null, agreedAt: MonotonicMs | null, observedFrom: MonotonicMs | null) {
    if (agreedAt === null || observedFrom === null) return null;
    const suspendedAt = this.suspendedAt();
    const times = this.#recentWallChanges().length;
    const change =
      times < WALL_CHANGES_MIN
        ? "the wall clock was changed, or the machine was suspended"
        : `the wall clock has changed ${times} times within an hour: check the time synchronization of this machine`;
    if (observedFrom <= suspendedAt) return `${change}; the hold ends after the next walk of the nodes`;
    const left = DISAGREEMENT_MS - (this.#clock.monotonic() - suspendedAt);
    if (agreedAt <= suspendedAt && left > 0)
      return `${change}; the hold ends once a response shows the service's time, or in ${formatSecondsLeft(left)}`;
    return this.checkSuspension(serviceNow) === null
      ? null
      : "the machine was suspended, and the journal's clock is behind; it is corrected within seconds";
  }

  /** Adopts the time on which the clocks agree after a suspension, which holds actions for {@link DISAGREEMENT_MS}. */
  #endSuspension(): void {
    const lag = formatDuration(Math.round((this.#clock.now() - this.now()) / MINUTE_MS) * MINUTE_MS);
    this.#log.warn(
      { lag },
      "journal's clock corrected: the monotonic clock had stopped, as it does while a machine is suspended",
    );
    this.#advanceTo(this.#clock.now());
    this.#lagMs = 0;
    this.#uncertainUntil = this.now() + DISAGREEMENT_MS;
  }

  /** Returns why the clock holds every action, or null if it holds none. */
  problem(): string | null {
    if (this.#disagreesSince !== null) {
      const gap = Math.max(SECOND_MS, DISAGREEMENT_MS - (this.#clock.monotonic() - this.#disagreesSince));
      return `${this.#difference}, and how long the daemon was down is unknown; the hold ends when they agree, or in ${formatSecondsLeft(gap)}`;
    }
    if (this.#uncertainUntil === Number.POSITIVE_INFINITY || this.now() >= this.#uncertainUntil) return null;
    return `the journal's clock was behind and has been corrected, so it is unknown how long ago earlier actions were sent; the hold ends in ${formatSecondsLeft(this.#uncertainUntil - this.now())}`;
  }

  /**
   * Compares the clocks until this one is settled, and after a suspension. `serviceNow` is the time by the service's
   * Date, or null if not known yet.
   */
  check(serviceNow: EpochMs | null): void {
    if (this.checkSuspension(serviceNow) !== null) this.#endSuspension();
    if (this.#isSettled || serviceNow === null) return;
    const wall = this.#clock.now();
    if (isNear(wall, serviceNow)) {
      // The earlier one skips no time. A new journal has none to skip.
      this.#adoptAgreed(this.#isNew ? wall : Math.min(wall, serviceNow));
      return;
    }
    this.#difference = `the wall clock of this machine is ${differenceText(wall - serviceNow)} the service's Date`;
    if (this.#disagreesSince === null)
      this.#log.error({ difference: this.#difference }, "the wall clock and the service's Date disagree");
    this.#disagreesSince ??= this.#clock.monotonic();
    const near = this.#near(wall, serviceNow);
    // A new journal has no times that a jump could skip.
    if (this.#isNew) this.#adopt(serviceNow);
    else if (this.#isDowntimeUnknown) {
      if (this.#clock.monotonic() - this.#disagreesSince < DISAGREEMENT_MS) return;
      // Time continues unchanged. A jump now would shorten what began during the disagreement.
      this.#settle();
      this.#uncertainUntil = Number.POSITIVE_INFINITY;
    } else if (near.length > 0) {
      this.#adopt(earliest(near) - this.#lagMs);
      this.#isDowntimeUnknown = true;
      this.#uncertainUntil = Number.POSITIVE_INFINITY;
    } else {
      // The downtime by the earlier of the two clocks is no more than the true one unless both are wrong. It is added
      // immediately, so that the end of the disagreement does not skip a cooldown that started during it.
      this.#advanceTo(earliest([wall, serviceNow]) - this.#lagMs);
      this.#isDowntimeUnknown = true;
    }
  }

  /**
   * Adopts the time on which the clocks agree. If an earlier process left this clock behind, earlier times now seem to be
   * longer ago than they are, so actions are held.
   */
  #adoptAgreed(at: EpochMs): void {
    const behindMs = at - this.now();
    this.#adopt(at - this.#lagMs);
    this.#agreedAt = this.now();
    if (this.#uncertainUntil !== Number.POSITIVE_INFINITY) return;
    this.#uncertainUntil = Number.NEGATIVE_INFINITY;
    if (behindMs <= AGREEMENT_MS) return;
    this.#isDowntimeUnknown = true;
    this.#uncertainUntil = this.now() + DISAGREEMENT_MS;
  }

  #recentWallChanges(): readonly MonotonicMs[] {
    return this.#wallChanges.filter((at) => this.#clock.monotonic() - at < WALL_CHANGES_MS);
  }

  /** Returns those of the other clocks that agree with this one. */
  #near(...others: readonly EpochMs[]): readonly EpochMs[] {
    return others.filter((time) => isNear(time, this.now()));
  }

  #adopt(at: EpochMs): void {
    if (this.#isNew) this.#offset = at - this.#clock.monotonic();
    else this.#advanceTo(at);
    this.#settle();
  }

  #advanceTo(at: EpochMs): void {
    this.#offset = Math.max(this.now(), at) - this.#clock.monotonic();
  }

  #settle(): void {
    this.#isSettled = true;
    this.#disagreesSince = null;
  }
}

/** Returns the earliest of some clocks, less the resolution of a Date, because an advance can't be undone. */
const earliest = (clocks: readonly EpochMs[]): EpochMs => Math.min(...clocks) - SECOND_MS;

const isNear = (one: EpochMs, other: EpochMs): boolean => Math.abs(one - other) <= AGREEMENT_MS;

const differenceText = (ms: number): string =>
  `${formatDuration(Math.round(Math.abs(ms) / MINUTE_MS) * MINUTE_MS)} ${ms > 0 ? "ahead of" : "behind"}`;
