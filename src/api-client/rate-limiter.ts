import { type DurationMs, HOUR_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import type { CallCounter, Clock, Log } from "../model/ports.ts";
import type { EpochMs } from "../model/time.ts";
import { availabilityOf } from "../rate-limit/availability.ts";
import { billingMonthOf, utcDay } from "../rate-limit/billing-month.ts";
import { expectedCallsOfPlan, LIMIT_SCOPES, type LimitScope } from "../rate-limit/external-usage/external-usage.ts";
import { learnedLimitOf } from "../rate-limit/gateway-limit.ts";
import {
  type CallOutcome,
  createLedger,
  type Ledger,
  type Permit,
  settlePermit,
  takePermit,
} from "../rate-limit/ledger.ts";
import { CATEGORIES, type Category, type Lane, type Limits } from "../rate-limit/limits.ts";
import { createRecentCallCounter, type RecentCalls } from "../rate-limit/recent-calls.ts";
import {
  createFairQueue,
  TRAFFIC_CLASSES,
  type TrafficClass,
  type TrafficShares,
  trafficClassOf,
} from "../scheduling/fair-queue.ts";

/** Hands out permits, to actions first, to the rest by weight, and keeps the month's calls in the store. */
export interface RateLimiter {
  /** Waits for leave to make one call; null if `signal` aborted first. Every permit must be given back. */
  acquire(category: Category, lane: Lane, signal: AbortSignal): Promise<Permit | null>;
  release(permit: Permit, outcome: CallOutcome): void;
  /** Sets in which ratio calls that wait at the same time get their permits; actions go before all of them. */
  setShares(shares: TrafficShares): void;
  /** New limits (a reload) hold from the next permit on; what was learned stays. */
  setLimits(limits: Limits, monthStartsOn: number): void;
  /** Calls made in the plan's month that it is now: ours, and what was learned of others'. */
  monthUsed(): number;
  /** Calls of the lane `action` of late. */
  recentActions(): Readonly<Record<Category, RecentCalls>>;
  /** Calls that other users of the key are expected to make in a window; of the plan, in a minute. */
  externalCalls(): Readonly<Record<LimitScope, number>>;
  /** Limits that were learned from refusals which no header explains, in calls a window; null: none was. */
  learnedLimits(): Readonly<Record<Category, number | null>>;
  readonly ledger: Ledger;
}

/** What a permit office stands on. */
export interface RateLimiterDeps {
  readonly limits: Limits;
  /** Day of the month on which the plan's month begins, 1 to 31 (UTC). */
  readonly monthStartsOn: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly calls: CallCounter;
  readonly log: Log;
  /** Told how long each permit was waited for, also in vain. */
  readonly onWait: (category: Category, waitedMs: DurationMs) => void;
  /** Told of calls of other users of the key, as they are learned. */
  readonly onExternalCalls?: (scope: LimitScope, calls: number) => void;
}

interface WaitingCall {
  readonly category: Category;
  readonly lane: Lane;
  readonly since: number;
  grant(permit: Permit | null): void;
}

/** A wait that nothing in sight ends is looked at again after this. */
const RECHECK_MS_MAX: DurationMs = HOUR_MS;
/** Shortest nap between two looks at the queue, so that rounding can't spin it. */
const RECHECK_MS_MIN: DurationMs = 1;

/** An office whose ledger begins anew, with the calls of the month that the store remembers. */
export function createRateLimiter(parts: RateLimiterDeps): RateLimiter {
  const { clock, calls } = parts;
  let monthStartsOn = parts.monthStartsOn;
  let month = billingMonthOf(clock.now(), monthStartsOn);
  const ledger = createLedger(parts.limits, calls.since(month.firstDay), clock.monotonic());
  /** Calls that the store refused to count, less those it counted and that never went out: they go with the next. */
  let uncounted = 0;
  let isStoreFailing = false;
  const actions = { node_management: createRecentCallCounter(), session_monitoring: createRecentCallCounter() };
  /** Calls of others that were counted and told of. */
  const externalCounts = {} as Record<LimitScope, { likely: number; reported: number }>;
  for (const scope of LIMIT_SCOPES) externalCounts[scope] = { likely: 0, reported: 0 };
  const fairShare = createFairQueue();
  // First come, first served within a queue, but suspects go before routine details.
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
      // The old count stands until the store can be read: too few calls are better than too many.
      parts.log.error({ err: error }, "the calls of the month could not be read");
    }
  }

  function countCalls(callsMade: number): void {
    uncounted += callsMade;
    if (uncounted <= 0) return;
    try {
      calls.add(utcDay(clock.now()), uncounted);
      if (isStoreFailing) parts.log.info({ calls: uncounted }, "calls are counted durably again");
      isStoreFailing = false;
      uncounted = 0;
    } catch (error) {
      // Without the store the ledger's own count holds for this process: watching goes on. Said once, not at each call.
      if (!isStoreFailing) parts.log.error({ err: error }, "calls can't be counted durably; they are kept in memory");
      isStoreFailing = true;
    }
  }

  /**
   * What others called counts in the month as ours does: the service makes no difference. There what is likely counts,
   * for the month would end too soon; told is what is proved.
   */
  function countExternalCalls(): void {
    for (const scope of LIMIT_SCOPES) {
      const { likely, reported: told } = externalCounts[scope];
      const others = ledger.externalUsage[scope];
      externalCounts[scope] = { likely: others.likelyCalls(), reported: others.provenCalls() };
      const learned = others.likelyCalls() - likely;
      ledger.monthUsed += learned;
      if (learned > 0) countCalls(learned);
      if (others.provenCalls() > told) parts.onExternalCalls?.(scope, others.provenCalls() - told);
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

  /** Grants all that may go now; returns when to look again. */
  function serve(): DurationMs {
    updateMonth(clock.now());
    let wakeIn: DurationMs = Math.min(RECHECK_MS_MAX, Math.max(SECOND_MS, month.endMs - clock.now()));
    /** Grants a call if it may go now; else it is looked at again when it may. */
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

  /** Serves the first of the flows whose category is open; false: there is none. */
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
      // It was counted when it was granted. The next one granted makes up for it.
      if (outcome.kind === "unused") uncounted--;
      settlePermit(ledger, permit, outcome, parts.random(), clock.monotonic());
      countExternalCalls();
      recheck();
    },
    setShares: fairShare.setShares,
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
