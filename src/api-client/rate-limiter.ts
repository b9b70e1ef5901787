import { byName } from "../base/by-name.ts";
import { type DurationMs, HOUR_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import { parseJsonObject } from "../base/text.ts";
import type { Clock, FactStore } from "../model/ports.ts";
import type { EpochMs } from "../model/time.ts";
import { availabilityOf } from "../rate-limit/availability.ts";
import { expectedCallsOfPlan, LIMIT_SCOPES, type LimitScope } from "../rate-limit/external-usage/external-usage.ts";
import { learnedLimitOf } from "../rate-limit/learned-limit.ts";
import { createLedger, type Ledger, type Permit } from "../rate-limit/ledger.ts";
import { CATEGORIES, type Category, type Lane, type Limits } from "../rate-limit/limits.ts";
import { type BillingMonth, MONTH_FACT, storedMonthStart } from "../rate-limit/monthly-budget.ts";
import { type CallOutcome, recentActionsOf, settlePermit, takePermit } from "../rate-limit/permits.ts";
import { continueHolds, HOLDS_FACT, holdEnds, storedHoldsOf } from "../rate-limit/stored-holds.ts";
import { endHolds, heldUntil } from "../rate-limit/too-many-requests.ts";
import type { TrafficShares } from "../scheduling/fair-queue.ts";
import { MonthCallCount, type MonthCallCountDeps } from "./month-call-count.ts";
import { PermitQueue, type WaitingCall } from "./permit-queue.ts";
import type { ServiceClock } from "./service-clock.ts";

/** Dependencies of the rate limiter. */
interface RateLimiterDeps extends MonthCallCountDeps {
  readonly limits: Limits;
  /** Day of the month on which the plan's month begins, 1 to 31 (UTC). */
  readonly monthStartsOn: number;
  readonly clock: Clock;
  readonly random: Random;
  /** Called with the time that each call has waited for a permit, whether it got one or was canceled. */
  readonly onWait?: (category: Category, waitedMs: DurationMs) => void;
  /** Whether calls may be sent at all; checked again every second while it is false. Absent means always. */
  readonly mayCall?: () => boolean;
  /** Called when calls by other users of the key are detected. */
  readonly onExternalCalls?: (scope: LimitScope, calls: number) => void;
}

/**
 * This long after the last response, the wall clock counts if it is later than the service's. Otherwise a daemon that
 * makes no more calls in a month might not notice the next one after a suspension of its machine, during which the
 * monotonic clock stands still.
 */
const AGREEMENT_MS_MAX: DurationMs = 6 * HOUR_MS;
/** A wait without a known end is checked again after this time. */
const RECHECK_MS_MAX: DurationMs = HOUR_MS;
/** Minimum time between two rechecks: rounding errors must not cause a busy loop. */
const RECHECK_MS_MIN: DurationMs = 1;

/** Grants permits, to actions first and to other calls by weight, and counts the month's calls in the store. */
export class RateLimiter {
  readonly ledger: Ledger;
  readonly #deps: RateLimiterDeps;
  readonly #clock: Clock;
  readonly #knownMonthStart: EpochMs;
  readonly #month: MonthCallCount;
  readonly #queue = new PermitQueue();
  readonly #countExternalCalls: () => void;
  readonly #storeHolds: () => void;
  readonly #serve: () => void;
  #serviceClock: Pick<ServiceClock, "agreedAt" | "timeAt"> | null = null;

  /** Creates a new ledger, and reads the month's calls and the holds of earlier 429s and 5xx from the store. */
  constructor(deps: RateLimiterDeps) {
    const { clock, facts } = deps;
    this.#deps = deps;
    this.#clock = clock;
    this.ledger = createLedger(deps.limits, clock.monotonic());
    this.#knownMonthStart = storedMonthStart(facts?.read(MONTH_FACT) ?? null);
    const monthClock = { now: () => this.#monthTime(), monotonic: () => clock.monotonic() };
    this.#month = new MonthCallCount({ ...deps, clock: monthClock }, this.ledger, deps.monthStartsOn);
    this.#countExternalCalls = createExternalCallCount(this.ledger, this.#month, deps.onExternalCalls);
    this.#storeHolds = facts === undefined ? () => {} : createHoldStore(this.ledger, facts, clock);
    this.#storeHolds();
    this.#serve = createRecheck(clock, () => this.#grantCalls());
  }

  /** Resolves to a permit for one call, or to null if `signal` aborts first. Every permit must be released. */
  acquire(category: Category, lane: Lane, signal: AbortSignal): Promise<Permit | null> {
    if (signal.aborted) return Promise.resolve(null);
    const since = this.#clock.monotonic();
    const permit = this.#queue.wait({ category, lane, since }, signal, (granted) => {
      if (granted !== null) return this.release(granted, { kind: "unused" });
      this.#deps.onWait?.(category, this.#clock.monotonic() - since);
      this.#serve();
    });
    this.#serve();
    return permit;
  }

  release(permit: Permit, outcome: CallOutcome): void {
    if (outcome.kind === "unused") this.#month.takeBack();
    settlePermit(this.ledger, permit, outcome, this.#deps.random(), this.#clock.monotonic());
    this.#storeHolds();
    this.#countExternalCalls();
    this.#serve();
  }

  /** Grants all calls that may be sent now. Returns the time until the next check, or null if no call waits. */
  #grantCalls(): DurationMs | null {
    if (this.#deps.mayCall?.() === false) return this.#queue.isEmpty() ? null : SECOND_MS;
    this.#month.update();
    let nextCheckMs = this.#month.isUnread()
      ? SECOND_MS
      : Math.min(RECHECK_MS_MAX, Math.max(SECOND_MS, this.#month.leftMs()));
    const mayGrant = ({ category, lane }: WaitingCall): boolean => {
      const now = this.#clock.monotonic();
      const { at } = availabilityOf(this.ledger, category, lane, now);
      if (at > now) nextCheckMs = Math.min(nextCheckMs, at - now);
      return at <= now;
    };
    this.#queue.serve(mayGrant, (call) => this.#grantCall(call));
    return this.#queue.isEmpty() ? null : Math.max(RECHECK_MS_MIN, nextCheckMs);
  }

  #grantCall({ category, lane, since, grant }: WaitingCall): void {
    const now = this.#clock.monotonic();
    const permit = takePermit(this.ledger, category, lane, now);
    const counted = this.#month.add(1);
    this.#deps.onWait?.(category, now - since);
    grant(permit, counted);
  }

  /**
   * Counts the month by the service's clock, as the service does, once two responses agree on it. By a wrong wall
   * clock, calls would be counted in another month.
   */
  followServiceClock(serviceClock: Pick<ServiceClock, "agreedAt" | "timeAt">): void {
    this.#serviceClock = serviceClock;
  }

  /**
   * Returns the time by which the month is counted. Until it follows the service's clock, this is the wall clock, but
   * not before the month in which the last process counted.
   */
  #monthTime(): EpochMs {
    const [now, wallTime] = [this.#clock.monotonic(), this.#clock.now()];
    const agreedAt = this.#serviceClock?.agreedAt() ?? null;
    const serviceTime = agreedAt === null ? null : this.#serviceClock!.timeAt(now);
    if (agreedAt === null || serviceTime === null) return Math.max(wallTime, this.#knownMonthStart);
    return now - agreedAt < AGREEMENT_MS_MAX ? serviceTime : Math.max(serviceTime, wallTime);
  }

  /** Sets the ratio in which waiting calls get permits; actions always have priority. */
  setShares(shares: TrafficShares): void {
    this.#queue.setShares(shares);
  }

  /** Stores the exact count of calls, if the store accepts it. Call it when no more calls follow. */
  flush(): Promise<void> {
    return this.#month.flush();
  }

  /**
   * Applies new limits from the next permit on, and ends the holds of earlier 429s and 5xx within a window, since they
   * may concern the old limits; learned limits stay.
   */
  setLimits(limits: Limits, monthStartsOn: number): void {
    this.ledger.limits = limits;
    endHolds(this.ledger, this.#clock.monotonic());
    this.#storeHolds();
    this.#month.setStartDay(monthStartsOn);
    this.#serve();
  }

  /** Returns how long earlier 429s, or the Retry-After of earlier 5xx, still hold the next call; 0 if they do not. */
  heldForMs(category: Category, lane: Lane): DurationMs {
    return Math.max(0, heldUntil(this.ledger, category, lane) - this.#clock.monotonic());
  }

  /** Calls in the plan's current month: ours and detected external ones. */
  monthUsed(): number {
    return this.#month.used();
  }

  /** The plan's current month. */
  month(): BillingMonth {
    return this.#month.month();
  }

  /** Time until the plan's month ends. */
  monthLeftMs(): DurationMs {
    return this.#month.leftMs();
  }

  /** Calls for actions in the last hour and in the last day. */
  recentActions() {
    return byName(CATEGORIES, (category) => recentActionsOf(this.ledger, category, this.#clock.monotonic()));
  }

  /** Calls expected from other users of the key, per window; for the plan, per minute. */
  externalCalls(): Record<LimitScope, number> {
    const now = this.#clock.monotonic();
    const expected = byName(CATEGORIES, (category) => this.ledger.externalUsage[category].expectedCalls(now));
    return { ...expected, plan: expectedCallsOfPlan(this.ledger, now) };
  }

  /** Limits learned from 429s that no header explains, in calls per window, or null if there is none. */
  learnedLimits() {
    return byName(CATEGORIES, (category) => learnedLimitOf(this.ledger, category, this.#clock.monotonic()));
  }
}

/**
 * Continues the stored holds. Returns a function that stores those of the ledger if they have changed. A hold that is over
 * is removed from the store, because it would return if the wall clock were set back.
 */
function createHoldStore(ledger: Ledger, facts: FactStore, clock: Clock): () => void {
  const fact = facts.read(HOLDS_FACT) ?? "null";
  if (fact !== "null") continueHolds(ledger, parseJsonObject(fact), clock.monotonic(), clock.now());
  let storedEnds = fact === "null" ? "" : null;
  return function storeHolds() {
    const ends = holdEnds(ledger, clock.monotonic()).join(" ");
    if (ends === storedEnds) return;
    storedEnds = ends;
    const holds = ends === "" ? null : storedHoldsOf(ledger, clock.monotonic(), clock.now());
    facts.write(HOLDS_FACT, JSON.stringify(holds));
  };
}

/**
 * Returns a function that runs `check`, and again after the time that it returns, until it returns null. Each call of
 * the function replaces the pending check.
 */
function createRecheck(clock: Clock, check: () => DurationMs | null): () => void {
  let pending = new AbortController();
  return function recheck() {
    // Without a reason each abort would create an exception with a stack trace, once per call.
    pending.abort(null);
    const waitMs = check();
    if (waitMs === null) return;
    const current = new AbortController();
    pending = current;
    void clock.sleep(waitMs, current.signal).then(() => {
      if (!current.signal.aborted) recheck();
    });
  };
}

/**
 * Returns a function that counts new external calls in the month, as the service does. These are the likely calls, so
 * that the month's calls are not used up too soon; only proven ones are reported.
 */
function createExternalCallCount(
  ledger: Ledger,
  month: MonthCallCount,
  onExternalCalls: RateLimiterDeps["onExternalCalls"],
): () => void {
  const counts = LIMIT_SCOPES.map((scope) => ({ scope, likely: 0, proven: 0 }));
  return () => {
    for (const count of counts) {
      const usage = ledger.externalUsage[count.scope];
      const newLikely = usage.likelyCalls() - count.likely;
      const newProven = usage.provenCalls() - count.proven;
      count.likely += newLikely;
      count.proven += newProven;
      ledger.monthUsed += newLikely;
      if (newLikely > 0) void month.add(newLikely);
      if (newProven > 0) onExternalCalls?.(count.scope, newProven);
    }
  };
}
