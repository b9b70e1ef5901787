import { type DurationMs, HOUR_MS, SECOND_MS } from "../base/duration.ts";
import type { Random } from "../base/random.ts";
import { createFairShare, FLOWS, type Flow, flowOf, type Shares } from "../scheduling/fair-queue.ts";
import { learnedOf } from "../rate-limit/gateway-limit.ts";
import { type CallOutcome, createLedger, type Ledger, type Permit, settle, take } from "../rate-limit/ledger.ts";
import { CATEGORIES, type Category, type Lane, type Limits } from "../rate-limit/limits.ts";
import { planMonth, utcDay } from "../rate-limit/billing-month.ts";
import { opening } from "../rate-limit/availability.ts";
import { expectedOfPlan, SCOPES, type Scope } from "../rate-limit/external-usage/external-usage.ts";
import { createRecent, type RecentCalls } from "../rate-limit/recent-calls.ts";
import type { CallCounter, Clock, Log } from "../model/ports.ts";
import type { EpochMs } from "../model/time.ts";

/** Hands out permits, to actions first, to the rest by weight, and keeps the month's calls in the store. */
export interface PermitOffice {
  /** Waits for leave to make one call; null if `signal` aborted first. Every permit must be given back. */
  request(category: Category, lane: Lane, signal: AbortSignal): Promise<Permit | null>;
  giveBack(permit: Permit, outcome: CallOutcome): void;
  /** Sets in which ratio calls that wait at the same time get their permits; actions go before all of them. */
  share(shares: Shares): void;
  /** New limits (a reload) hold from the next permit on; what was learned stays. */
  relimit(limits: Limits, monthStartsOn: number): void;
  /** Calls made in the plan's month that it is now: ours, and what was learned of others'. */
  monthUsed(): number;
  /** Calls of the lane `action` of late. */
  actions(): Readonly<Record<Category, RecentCalls>>;
  /** Calls that other users of the key are expected to make in a window; of the plan, in a minute. */
  others(): Readonly<Record<Scope, number>>;
  /** Limits that were learned from refusals which no header explains, in calls a window; null: none was. */
  learned(): Readonly<Record<Category, number | null>>;
  readonly ledger: Ledger;
}

/** What a permit office stands on. */
export interface PermitOfficeParts {
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
  readonly onForeign?: (scope: Scope, calls: number) => void;
}

interface Waiting {
  readonly category: Category;
  readonly lane: Lane;
  readonly since: number;
  grant(permit: Permit | null): void;
}

/** A wait that nothing in sight ends is looked at again after this. */
const RECHECK_MS_MAX: DurationMs = HOUR_MS;
/** Shortest nap between two looks at the queue, so that rounding can't spin it. */
const NAP_MS_MIN: DurationMs = 1;

/** An office whose ledger begins anew, with the calls of the month that the store remembers. */
export function createPermitOffice(parts: PermitOfficeParts): PermitOffice {
  const { clock, calls } = parts;
  let monthStartsOn = parts.monthStartsOn;
  let month = planMonth(clock.now(), monthStartsOn);
  const ledger = createLedger(parts.limits, calls.since(month.firstDay), clock.monotonic());
  /** Calls that the store refused to count, less those it counted and that never went out: they go with the next. */
  let uncounted = 0;
  let isStoreFailing = false;
  const actions = { node_management: createRecent(), session_monitoring: createRecent() };
  /** Calls of others that were counted and told of. */
  const foreign = {} as Record<Scope, { likely: number; told: number }>;
  for (const scope of SCOPES) foreign[scope] = { likely: 0, told: 0 };
  const fairShare = createFairShare();
  // First come, first served within a queue, but suspects go before routine details.
  const queues: Readonly<Record<Flow | "action", Waiting[]>> = {
    action: [],
    nodes: [],
    sessions: [],
    details: [],
    stats: [],
  };
  let nap = new AbortController();

  function turnMonth(now: EpochMs): void {
    if (now < month.startMs || now >= month.endMs) beginMonth(now);
  }

  function beginMonth(now: EpochMs): void {
    const next = planMonth(now, monthStartsOn);
    try {
      ledger.monthUsed = calls.since(next.firstDay) + uncounted;
      month = next;
    } catch (error) {
      // The old count stands until the store can be read: too few calls are better than too many.
      parts.log.error({ err: error }, "the calls of the month could not be read");
    }
  }

  function count(made: number): void {
    uncounted += made;
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
  function countForeign(): void {
    for (const scope of SCOPES) {
      const { likely, told } = foreign[scope];
      const others = ledger.others[scope];
      foreign[scope] = { likely: others.likely(), told: others.total() };
      const learned = others.likely() - likely;
      ledger.monthUsed += learned;
      if (learned > 0) count(learned);
      if (others.total() > told) parts.onForeign?.(scope, others.total() - told);
    }
  }

  function grant(waiting: Waiting): void {
    const now = clock.monotonic();
    const permit = take(ledger, waiting.category, waiting.lane, now);
    count(1);
    if (waiting.lane === "action") actions[waiting.category].note(now);
    parts.onWait(waiting.category, now - waiting.since);
    waiting.grant(permit);
  }

  /** Grants all that may go now; returns when to look again. */
  function serve(): DurationMs {
    turnMonth(clock.now());
    let wakeIn: DurationMs = Math.min(RECHECK_MS_MAX, Math.max(SECOND_MS, month.endMs - clock.now()));
    /** Grants a call if it may go now; else it is looked at again when it may. */
    const tryGrant = (queue: Waiting[], index: number): boolean => {
      const waiting = queue[index]!;
      const now = clock.monotonic();
      const opens = opening(ledger, waiting.category, waiting.lane, now);
      if (opens.at > now) {
        wakeIn = Math.min(wakeIn, opens.at - now);
        return false;
      }
      queue.splice(index, 1);
      grant(waiting);
      return true;
    };
    for (let index = 0; index < queues.action.length; ) if (!tryGrant(queues.action, index)) index++;
    while (serveFlow(tryGrant));
    return Math.max(NAP_MS_MIN, wakeIn);
  }

  /** Serves the first of the flows whose category is open; false: there is none. */
  function serveFlow(tryGrant: (queue: Waiting[], index: number) => boolean): boolean {
    const flow = fairShare
      .order(FLOWS.filter((each) => queues[each].length > 0))
      .find((each) => tryGrant(queues[each], 0));
    if (flow === undefined) return false;
    fairShare.serve(flow);
    return true;
  }

  function enqueue(waiting: Waiting): void {
    const flow = flowOf(waiting.category, waiting.lane);
    const queue = queues[flow ?? "action"];
    if (flow !== null && queue.length === 0) fairShare.begin(flow);
    const routine = waiting.lane === "suspect" ? queue.findIndex(({ lane }) => lane === "detail") : -1;
    queue.splice(routine < 0 ? queue.length : routine, 0, waiting);
  }

  function look(): void {
    // Without a reason each abort would build an exception with its stack, and there is one for every call.
    nap.abort(null);
    const wakeIn = serve();
    if (Object.values(queues).every((queue) => queue.length === 0)) return;
    const mine = new AbortController();
    nap = mine;
    void clock.sleep(wakeIn, mine.signal).then(() => {
      if (!mine.signal.aborted) look();
    });
  }

  return {
    ledger,
    monthUsed() {
      turnMonth(clock.now());
      return ledger.monthUsed;
    },
    actions: () => byCategory((category) => actions[category].calls(clock.monotonic())),
    others() {
      const now = clock.monotonic();
      const expected = byCategory((category) => ledger.others[category].expected(now));
      return { ...expected, plan: expectedOfPlan(ledger.others, ledger.limits, now) };
    },
    learned: () => byCategory((category) => learnedOf(ledger, category, clock.monotonic())),
    request(category, lane, signal) {
      if (signal.aborted) return Promise.resolve(null);
      return new Promise((resolve) => {
        const onAbort = () => {
          const queue = queues[flowOf(category, lane) ?? "action"];
          queue.splice(queue.indexOf(waiting), 1);
          parts.onWait(category, clock.monotonic() - waiting.since);
          resolve(null);
          look();
        };
        const waiting: Waiting = {
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
        look();
      });
    },
    giveBack(permit, outcome) {
      // It was counted when it was granted. The next one granted makes up for it.
      if (outcome.kind === "unused") uncounted--;
      settle(ledger, permit, outcome, parts.random(), clock.monotonic());
      countForeign();
      look();
    },
    share: fairShare.setShares,
    relimit(limits, startsOn) {
      ledger.limits = limits;
      if (startsOn !== monthStartsOn) {
        monthStartsOn = startsOn;
        beginMonth(clock.now());
      }
      look();
    },
  };
}

const byCategory = <T>(read: (category: Category) => T): Record<Category, T> =>
  Object.fromEntries(CATEGORIES.map((category) => [category, read(category)])) as Record<Category, T>;
