import type { CallCounter, Clock, Log } from "../model/ports.ts";
import type { Ledger } from "../rate-limit/ledger.ts";
import { type BillingMonth, billingMonthOf, utcDay } from "../rate-limit/monthly-budget.ts";

/** What a {@link MonthCallCount} needs. */
export interface MonthCallCountDeps {
  readonly clock: Pick<Clock, "now">;
  readonly calls: CallCounter;
  readonly log: Log;
}

/** Counts calls in the store, and keeps `ledger.monthUsed` current when the month of the plan changes. */
export class MonthCallCount {
  readonly #deps: MonthCallCountDeps;
  readonly #ledger: Ledger;
  #startsOn: number;
  #month: BillingMonth;
  /** Calls to add to the store, less those stored but never sent. Added with the next call. */
  #unstored = 0;
  /** Null: no count is being stored. */
  #storing: Promise<void> | null = null;
  #isStoreFailing = false;

  /** `startsOn`: day on which the month of the plan starts, 1 to 31 (UTC). Throws if the store can't be read. */
  constructor(deps: MonthCallCountDeps, ledger: Ledger, startsOn: number) {
    this.#deps = deps;
    this.#ledger = ledger;
    this.#startsOn = startsOn;
    this.#month = billingMonthOf(deps.clock.now(), startsOn);
    ledger.monthUsed = deps.calls.since(this.#month.firstDay);
  }

  /** Starts a new month if the current one is over. */
  update(): void {
    const now = this.#deps.clock.now();
    if (now < this.#month.startMs || now >= this.#month.endMs) this.#startMonth();
  }

  /** Milliseconds until the month ends. */
  leftMs(): number {
    return this.#month.endMs - this.#deps.clock.now();
  }

  setStartDay(startsOn: number): void {
    if (startsOn === this.#startsOn) return;
    this.#startsOn = startsOn;
    this.#startMonth();
  }

  /** Adds calls, and those that the store rejected before. Resolves once they are stored or rejected; never rejects. */
  async add(calls: number): Promise<void> {
    this.#unstored += calls;
    // One at a time, so that a rejected count is part of the next one.
    while (this.#storing !== null) await this.#storing;
    if (this.#unstored <= 0) return;
    this.#storing = this.#store(this.#unstored);
    await this.#storing;
    this.#storing = null;
  }

  async #store(calls: number): Promise<void> {
    const { clock, calls: store, log } = this.#deps;
    try {
      await store.add(utcDay(clock.now()), calls);
      this.#unstored -= calls;
      if (this.#isStoreFailing) log.info({ calls }, "calls stored again");
      this.#isStoreFailing = false;
    } catch (error) {
      // The count in memory suffices for this process, so polling continues. Logged once, not at each call.
      if (!this.#isStoreFailing) log.error({ err: error }, "calls not stored; they are counted in memory");
      this.#isStoreFailing = true;
    }
  }

  /** Takes back a call that was added and not sent; the next call compensates. */
  takeBack(): void {
    this.#unstored--;
  }

  #startMonth(): void {
    const { clock, calls, log } = this.#deps;
    const month = billingMonthOf(clock.now(), this.#startsOn);
    try {
      this.#ledger.monthUsed = calls.since(month.firstDay) + this.#unstored;
      this.#month = month;
    } catch (error) {
      // Keep the old count until the store is readable: too few calls are better than too many.
      log.error({ err: error }, "calls of the month not readable");
    }
  }
}
