import { type DurationMs, HOUR_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { CallCounter, Clock, Log } from "../model/ports.ts";
import type { EpochMs } from "../model/time.ts";
import { availabilityOf } from "../rate-limit/availability.ts";
import { expectedCallsOfPlan, LIMIT_SCOPES, type LimitScope } from "../rate-limit/external-usage/external-usage.ts";
import { learnedLimitOf } from "../rate-limit/gateway-limit.ts";
import { createLedger, type Ledger, type Permit } from "../rate-limit/ledger.ts";
import { CATEGORIES, type Category, type Lane, type Limits } from "../rate-limit/limits.ts";
import { billingMonthOf, utcDay } from "../rate-limit/monthly-budget.ts";
import { type CallOutcome, settlePermit, takePermit } from "../rate-limit/permits.ts";
import { createRecentCallCounter, type RecentCalls } from "../rate-limit/recent-calls.ts";
import {
  createFairQueue,
  TRAFFIC_CLASSES,
  type TrafficClass,
  type TrafficShares,
  trafficClassOf,
} from "../scheduling/fair-queue.ts";

/** Grants permits, to actions first and to other calls by weight, and counts the month's calls in the store. */
export interface RateLimiter {
  /** Waits for a permit for one call; null if `signal` aborts first. Every permit must be released. */
  acquire(category: Category, lane: Lane, signal: AbortSignal): Promise<Permit | null>;
  release(permit: Permit, outcome: CallOutcome): void;
  /** Sets the ratio in which waiting calls get permits; actions always have priority. */
  setShares(shares: TrafficShares): void;
  /** Stores the count of calls that the store rejected so far. Call it when no more calls follow. */
  flush(): void;
  /** Applies new limits from the next permit on; learned limits stay. */
  setLimits(limits: Limits, monthStartsOn: number): void;
  /** Calls in the plan's current month: ours, and those learned of other users. */
  monthUsed(): number;
  /** Recent calls of the lane `action`. */
  recentActions(): Readonly<Record<Category, RecentCalls>>;
  /** Calls expected from other users of the key per window; for the plan, per minute. */
  externalCalls(): Readonly<Record<LimitScope, number>>;
  /** Limits learned from 429s that no header explains, in calls per window; null: none. */
  learnedLimits(): Readonly<Record<Category, number | null>>;
  readonly ledger: Ledger;
}

/** Dependencies of the rate limiter. */
export interface RateLimiterDeps {
  readonly limits: Limits;
  /** Day of the month on which the plan's month begins, 1 to 31 (UTC). */
  readonly monthStartsOn: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly calls: CallCounter;
  readonly log: Log;
  /** Called with the wait of each permit, granted or not. */
  readonly onWait: (category: Category, waitedMs: DurationMs) => void;
  /** Called when calls of other users of the key are detected. */
  readonly onExternalCalls?: (scope: LimitScope, calls: number) => void;
}

interface WaitingCall {
  readonly category: Category;
  readonly lane: Lane;
  readonly since: number;
  grant(permit: Permit | null): void;
}

/** A wait without a known end is rechecked after this. */
const RECHECK_MS_MAX: DurationMs = HOUR_MS;
/** Minimum time between two rechecks: rounding errors must not cause a busy loop. */
const RECHECK_MS_MIN: DurationMs = 1;

/** Creates a rate limiter with a new ledger and the month's calls from the store. */
export function createRateLimiter(parts: RateLimiterDeps): RateLimiter {
  const { clock, calls } = parts;
  let monthStartsOn = parts.monthStartsOn;
  let month = billingMonthOf(clock.now(), monthStartsOn);
  const ledger = createLedger(parts.limits, calls.since(month.firstDay), clock.monotonic());
  /** Calls not yet in the store, less those counted there and never sent; added with the next call. */
  let uncounted = 0;
  let isStoreFailing = false;
  const actions = { node_management: createRecentCallCounter(), session_monitoring: createRecentCallCounter() };
  /** Calls of other users that were counted and reported. */
  const externalCounts = {} as Record<LimitScope, { likely: number; reported: number }>;
  for (const scope of LIMIT_SCOPES) externalCounts[scope] = { likely: 0, reported: 0 };
  const fairShare = createFairQueue();
  // First in, first out within a queue, but suspects precede routine details.
  const queues: Readonly<Record<TrafficClass | "action", WaitingCall[]>> = {
    action: [],
    nodes: [],
    sessions: [],
    details: [],
    stats: [],
  };
  let recheckTimer = new AbortController();

  function updateMonth(now: EpochMs): void {
    if (now < month.startMs || now >= month.endMs) beginMonth(now);
  }

  function beginMonth(now: EpochMs): void {
    const next = billingMonthOf(now, monthStartsOn);
    try {
      ledger.monthUsed = calls.since(next.firstDay) + uncounted;
      month = next;
    } catch (error) {
      // Keep the old count until the store is readable: too few calls are better than too many.
      parts.log.error({ err: error }, "calls of the month not readable");
    }
  }

  function countCalls(callsMade: number): void {
    uncounted += callsMade;
    if (uncounted <= 0) return;
    try {
      calls.add(utcDay(clock.now()), uncounted);
      if (isStoreFailing) parts.log.info({ calls: uncounted }, "calls stored again");
      isStoreFailing = false;
      uncounted = 0;
    } catch (error) {
      // The count in memory suffices for this process, so polling continues. Logged once, not at each call.
      if (!isStoreFailing) parts.log.error({ err: error }, "calls not stored; they are counted in memory");
      isStoreFailing = true;
    }
  }

  /**
   * Counts calls of other users in the month, since the service does. The month counts likely calls, so that it does not end
   * too soon; proven ones are reported.
   */
  function countExternalCalls(): void {
    for (const scope of LIMIT_SCOPES) {
      const { likely, reported } = externalCounts[scope];
      const others = ledger.externalUsage[scope];
      externalCounts[scope] = { likely: others.likelyCalls(), reported: others.provenCalls() };
      const learned = others.likelyCalls() - likely;
      ledger.monthUsed += learned;
      if (learned > 0) countCalls(learned);
      if (others.provenCalls() > reported) parts.onExternalCalls?.(scope, others.provenCalls() - reported);
    }
  }

  function grant(waiting: WaitingCall): void {
    const now = clock.monotonic();
    const permit = takePermit(ledger, waiting.category, waiting.lane, now);
    countCalls(1);
    if (waiting.lane === "action") actions[waiting.category].record(now);
    parts.onWait(waiting.category, now - waiting.since);
    waiting.grant(permit);
  }

  /** Grants all calls that may be sent now; returns the time until the next check. */
  function serve(): DurationMs {
    updateMonth(clock.now());
    let wakeIn: DurationMs = Math.min(RECHECK_MS_MAX, Math.max(SECOND_MS, month.endMs - clock.now()));
    /** Grants a call if it may be sent now. */
    const tryGrant = (queue: WaitingCall[], index: number): boolean => {
      const waiting = queue[index]!;
      const now = clock.monotonic();
      const availability = availabilityOf(ledger, waiting.category, waiting.lane, now);
      if (availability.at > now) {
        wakeIn = Math.min(wakeIn, availability.at - now);
        return false;
      }
      queue.splice(index, 1);
      grant(waiting);
      return true;
    };
    for (let index = 0; index < queues.action.length; ) if (!tryGrant(queues.action, index)) index++;
    while (serveClass(tryGrant));
    return Math.max(RECHECK_MS_MIN, wakeIn);
  }

  /** Grants one call of the first traffic class that may send; false: there is none. */
  function serveClass(tryGrant: (queue: WaitingCall[], index: number) => boolean): boolean {
    const trafficClass = fairShare
      .order(TRAFFIC_CLASSES.filter((each) => queues[each].length > 0))
      .find((each) => tryGrant(queues[each], 0));
    if (trafficClass === undefined) return false;
    fairShare.recordServed(trafficClass);
    return true;
  }

  function enqueue(waiting: WaitingCall): void {
    const trafficClass = trafficClassOf(waiting.category, waiting.lane);
    const queue = queues[trafficClass ?? "action"];
    if (trafficClass !== null && queue.length === 0) fairShare.activate(trafficClass);
    const routine = waiting.lane === "suspect" ? queue.findIndex(({ lane }) => lane === "detail") : -1;
    queue.splice(routine < 0 ? queue.length : routine, 0, waiting);
  }

  function recheck(): void {
    // Without a reason each abort would build an exception with its stack, and there is one for every call.
    recheckTimer.abort(null);
    const wakeIn = serve();
    if (Object.values(queues).every((queue) => queue.length === 0)) return;
    const own = new AbortController();
    recheckTimer = own;
    void clock.sleep(wakeIn, own.signal).then(() => {
      if (!own.signal.aborted) recheck();
    });
  }

  return {
    ledger,
    monthUsed() {
      updateMonth(clock.now());
      return ledger.monthUsed;
    },
    recentActions: () => forEachCategory((category) => actions[category].calls(clock.monotonic())),
    externalCalls() {
      const now = clock.monotonic();
      const expected = forEachCategory((category) => ledger.externalUsage[category].expectedCalls(now));
      return { ...expected, plan: expectedCallsOfPlan(ledger.externalUsage, ledger.limits, now) };
    },
    learnedLimits: () => forEachCategory((category) => learnedLimitOf(ledger, category, clock.monotonic())),
    acquire(category, lane, signal) {
      if (signal.aborted) return Promise.resolve(null);
      return new Promise((resolve) => {
        const onAbort = () => {
          const queue = queues[trafficClassOf(category, lane) ?? "action"];
          queue.splice(queue.indexOf(waiting), 1);
          parts.onWait(category, clock.monotonic() - waiting.since);
          resolve(null);
          recheck();
        };
        const waiting: WaitingCall = {
          category,
          lane,
          since: clock.monotonic(),
          grant(permit) {
            signal.removeEventListener("abort", onAbort);
            resolve(permit);
          },
        };
        signal.addEventListener("abort", onAbort, { once: true });
        enqueue(waiting);
        recheck();
      });
    },
    release(permit, outcome) {
      // It was counted when it was granted; the next grant compensates.
      if (outcome.kind === "unused") uncounted--;
      settlePermit(ledger, permit, outcome, parts.random(), clock.monotonic());
      countExternalCalls();
      recheck();
    },
    setShares: fairShare.setShares,
    flush: () => countCalls(0),
    setLimits(limits, startsOn) {
      ledger.limits = limits;
      if (startsOn !== monthStartsOn) {
        monthStartsOn = startsOn;
        beginMonth(clock.now());
      }
      recheck();
    },
  };
}

const forEachCategory = <T>(read: (category: Category) => T): Record<Category, T> =>
  Object.fromEntries(CATEGORIES.map((category) => [category, read(category)])) as Record<Category, T>;
