import { SECOND_MS } from "../base/duration.ts";
import type { CallCounter, Clock, FactStore, Log } from "../model/ports.ts";
import { FailureState } from "../platform/log.ts";
import type { Ledger } from "../rate-limit/ledger.ts";
import { type BillingMonth, billingMonthOf, MONTH_FACT, utcDay } from "../rate-limit/monthly-budget.ts";

/** Dependencies of a {@link MonthCallCount}. */
export interface MonthCallCountDeps {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly calls: CallCounter;
  /** Where the next process, standbys and commands read the month and the holds. Absent for commands. */
  readonly facts?: FactStore;
  readonly log: Log;
}

/**
 * After a second with at least this many calls, as many calls are stored ahead in the next second, because the store
 * syncs its disk for each count, which blocks the event loop. After a crash the calls that were stored ahead count as
 * used. Slower calls, such as those of plans with a small monthly limit, are stored one by one.
 */
const FAST_CALLS_MIN = 10;
/** Maximum number of calls stored ahead because they are fast. */
const AHEAD_CALLS_MAX = 100;

/** Counts calls in the store, and keeps `ledger.monthUsed` current when the month of the plan changes. */
export class MonthCallCount {
  readonly #deps: MonthCallCountDeps;
  readonly #ledger: Ledger;
  #startsOn: number;
  #month: BillingMonth;
  readonly #reads = new FailureState();
  /**
   * Calls to add to the store, less those stored ahead or never sent. If positive, they are added with the next call.
   */
  #unstored = 0;
  /** Day (UTC) of the last count. */
  #storedOn = "";
  /** Calls in the current second of the monotonic clock, and in the one before. */
  #second = 0;
  #callsInSecond = 0;
  #callsInLastSecond = 0;
  /** Null if no count is being stored. */
  #storing: Promise<void> | null = null;
  readonly #writes = new FailureState();

  /** `startsOn` is the day on which the month of the plan starts, 1 to 31 (UTC). Throws if the store can't be read. */
  constructor(deps: MonthCallCountDeps, ledger: Ledger, startsOn: number) {
    this.#deps = deps;
    this.#ledger = ledger;
    this.#startsOn = startsOn;
    this.#month = billingMonthOf(deps.clock.now(), startsOn);
    ledger.monthUsed = deps.calls.since(this.#month.firstDay);
  }

  /**
   * Starts a new month if the current one is over, or if the new one could not be read last time. Stores which month is
   * counted.
   */
  update(): void {
    const now = this.#deps.clock.now();
    if (this.#reads.isFailing || now < this.#month.startMs || now >= this.#month.endMs) this.#startMonth();
    const { facts } = this.#deps;
    if (facts !== undefined && facts.read(MONTH_FACT) !== this.#month.firstDay)
      facts.write(MONTH_FACT, this.#month.firstDay);
  }

  /** Returns the month whose calls are counted. */
  month(): BillingMonth {
    this.update();
    return this.#month;
  }

  /** Returns the calls in the current month. */
  used(): number {
    this.update();
    return this.#ledger.monthUsed;
  }

  /** Milliseconds until the month ends. */
  leftMs(): number {
    const now = this.#deps.clock.now();
    return billingMonthOf(now, this.#startsOn).endMs - now;
  }

  /** Whether the calls of the current month could not be read yet. */
  isUnread(): boolean {
    return this.#reads.isFailing;
  }

  setStartDay(startsOn: number): void {
    if (startsOn === this.#startsOn) return;
    this.#startsOn = startsOn;
    this.#startMonth();
  }

  /**
   * Adds calls, and those that the store rejected before. Resolves once they are stored or rejected, which is immediately
   * if they were stored ahead. Never rejects.
   */
  async add(calls: number): Promise<void> {
    while (this.#storing !== null && this.#storedOn !== utcDay(this.#deps.clock.now())) await this.#storing;
    this.#takeBackCallsAheadOfEarlierDay();
    this.#unstored += calls;
    this.#countSecond(calls);
    // One at a time, so that a rejected count is part of the next one.
    while (this.#storing !== null && this.#unstored > 0) await this.#storing;
    const { ahead = 0 } = this.#deps.calls;
    if (this.#unstored > 0) await this.#store(this.#unstored + this.#callsAhead());
    // This is not waited for. If it fails, the next call tries again.
    else if (this.#storing === null && this.#unstored > -ahead / 2) void this.#store(ahead);
  }

  /**
   * Stores what is not stored, and takes back what is stored ahead. Call it when no more calls follow. Never rejects.
   */
  async flush(): Promise<void> {
    this.#takeBackCallsAheadOfEarlierDay();
    while (this.#storing !== null) await this.#storing;
    if (this.#unstored !== 0) await this.#store(this.#unstored);
  }

  async #store(calls: number): Promise<void> {
    this.#storing = this.#tryToStore(calls);
    await this.#storing;
    this.#storing = null;
  }

  async #tryToStore(calls: number): Promise<void> {
    const { clock, calls: store, log } = this.#deps;
    try {
      this.#storedOn = utcDay(clock.now());
      await store.add(this.#storedOn, calls);
      this.#unstored -= calls;
      this.#writes.succeeded(log, { calls }, "the monthly call count can be stored again");
    } catch (err) {
      // No call is missing from the store.
      if (this.#unstored <= 0) return;
      // The count in memory suffices for this process, so polling continues.
      this.#writes.failed(log, { err }, "the monthly call count can't be stored; calls are counted in memory", "error");
    }
  }

  #countSecond(calls: number): void {
    const second = Math.floor(this.#deps.clock.monotonic() / SECOND_MS);
    if (second !== this.#second) {
      this.#callsInLastSecond = second === this.#second + 1 ? this.#callsInSecond : 0;
      this.#callsInSecond = 0;
      this.#second = second;
    }
    this.#callsInSecond += calls;
  }

  #callsAhead(): number {
    const { ahead = 0 } = this.#deps.calls;
    const isFast = this.#callsInLastSecond >= FAST_CALLS_MIN;
    return isFast ? Math.max(ahead, Math.min(AHEAD_CALLS_MAX, this.#callsInLastSecond)) : ahead;
  }

  /**
   * Takes back calls that were stored ahead on an earlier day, since the next day may begin another month. If this fails,
   * they stay counted on that day.
   */
  #takeBackCallsAheadOfEarlierDay(): void {
    const { clock, calls } = this.#deps;
    if (this.#unstored >= 0 || utcDay(clock.now()) === this.#storedOn) return;
    calls.add(this.#storedOn, this.#unstored).catch(() => undefined);
    this.#unstored = 0;
  }

  /** Takes back a call that was added and not sent; the next call compensates. */
  takeBack(): void {
    this.#unstored--;
  }

  #startMonth(): void {
    const { clock, calls, log } = this.#deps;
    const month = billingMonthOf(clock.now(), this.#startsOn);
    this.#takeBackCallsAheadOfEarlierDay();
    try {
      this.#ledger.monthUsed = calls.since(month.firstDay) + this.#unstored;
      this.#month = month;
      this.#reads.succeeded(log, {}, "the monthly call count can be read again");
    } catch (error) {
      // The old count stays until the store is readable: too few calls are better than too many.
      this.#reads.failed(log, { err: error }, "the monthly call count can't be read", "error");
    }
  }
}
