import { type Random, seededRandom } from "../../src/base/random.ts";
import { type CallOutcome, createLedger, type Permit, settle, take } from "../../src/budget/ledger.ts";
import { CATEGORIES, type Category, type Lane, type Limits } from "../../src/budget/limits.ts";
import { opening } from "../../src/budget/opening.ts";
import { reading } from "../../src/budget/view.ts";
import type { LimiterKind } from "../../src/model/scenario.ts";
import { createLimiter, type Limiter } from "../../src/simulator/limiter.ts";

/** One simulated stretch of time in which the ledger's owner always has another call to make. */
export interface Day {
  readonly limits: Limits;
  readonly limiter: LimiterKind;
  readonly headers: "category" | "plan" | "off";
  readonly reset: "full" | "next_token";
  readonly hours: number;
  readonly seed: number;
  /** Mean time between two kills of the process; its calls in flight are never answered. */
  readonly restartEveryMs: number;
  readonly categories: readonly Category[];
  readonly lane: (random: Random) => Lane;
  /** Calls a minute that another user of the key makes, in each category. */
  readonly others?: number;
  /** It makes so many of them at once; 1 unless said. */
  readonly othersAtOnce?: number;
  /** Its spacing is exact; else it varies by half. */
  readonly othersEven?: boolean;
  /** When it comes and goes; it is there all the time unless said. */
  readonly othersStay?: readonly [fromMs: number, untilMs: number];
  /** So many calls of the lane `action` are wanted at once in each category, each time that long after the last. */
  readonly flood?: { readonly calls: number; readonly everyMs: number };
}

export interface DayReport {
  readonly calls: number;
  readonly refused: number;
  readonly callsPerMinute: number;
  /** Of the calls, those of the flood. */
  readonly actions: number;
  /** Calls of the other user, and those of them that were refused. */
  readonly othersCalls: number;
  readonly othersRefused: number;
  /** Calls of others that the last process learned of. */
  readonly learned: number;
  /** Our own calls, minute by minute. */
  readonly minutes: readonly number[];
  /** Longest time in which no call but the flood's went out. */
  readonly pollingGapMs: number;
}

interface Event {
  readonly at: number;
  run(): void;
}

const EPOCH_MS = Date.UTC(2026, 0, 1);

/** Drives the ledger against the simulator's own limiters, with latencies, lost answers and restarts. */
export function liveDay(day: Day): DayReport {
  const random = seededRandom(day.seed);
  const endMs = day.hours * 3_600_000;
  const service = createService(day);
  const events: Event[] = [];
  const at = (time: number, run: () => void) => insert(events, { at: time, run });
  let now = 0;
  let process_ = { ledger: createLedger(day.limits, 0, 0), alive: true };
  let wakeAt = Number.POSITIVE_INFINITY;
  let calls = 0;
  let refused = 0;
  let othersCalls = 0;
  let othersRefused = 0;
  const minutes: number[] = new Array(Math.ceil(day.hours * 60)).fill(0);
  let actions = 0;
  let polledAt = 0;
  let pollingGapMs = 0;
  const wanted = Object.fromEntries(CATEGORIES.map((category) => [category, 0])) as Record<Category, number>;

  const send = (permit: Permit, owner: typeof process_) => {
    calls++;
    minutes[Math.floor(now / 60_000)]!++;
    const arrives = now + 1 + random() * 100;
    const lost = random() < 0.002;
    at(arrives, () => {
      const answer = service.answer(permit.category, now);
      if (answer.kind === "refused") refused++;
      at(now + 1 + random() * 100, () => {
        if (!owner.alive) return;
        settle(owner.ledger, permit, lost ? { kind: "lost" } : read(answer), random(), now);
        look();
      });
    });
  };

  const look = () => {
    let next = Number.POSITIVE_INFINITY;
    for (const category of day.categories) {
      while (wanted[category] > 0) {
        const opens = opening(process_.ledger, category, "action", now);
        if (opens.at > now) {
          next = Math.min(next, opens.at);
          break;
        }
        wanted[category]--;
        actions++;
        send(take(process_.ledger, category, "action", now), process_);
      }
      for (;;) {
        const lane = day.lane(random);
        const opens = opening(process_.ledger, category, lane, now);
        if (opens.at > now) {
          next = Math.min(next, opens.at);
          break;
        }
        pollingGapMs = Math.max(pollingGapMs, now - polledAt);
        polledAt = now;
        send(take(process_.ledger, category, lane, now), process_);
      }
    }
    if (next < wakeAt) {
      wakeAt = next;
      at(next, () => {
        if (wakeAt !== next) return;
        wakeAt = Number.POSITIVE_INFINITY;
        look();
      });
    }
  };

  const read = (answer: Stated): CallOutcome => {
    const told = answer.headers === null ? null : reading({ ...answer.headers, dateEpochMs: answer.dateMs }, now);
    return answer.kind === "answered"
      ? { kind: "answered", reading: told }
      : { kind: "refused", reading: told, retryAfterMs: answer.retryAfterSeconds * 1_000 };
  };

  const restart = () => {
    process_.alive = false;
    process_ = { ledger: createLedger(day.limits, 0, now), alive: true };
    look();
    at(now - Math.log(1 - random()) * day.restartEveryMs, restart);
  };
  const { othersAtOnce = 1, othersEven = false, othersStay: [comes, goes] = [0, endMs] } = day;
  const other = (category: Category) => {
    if (now > goes) return;
    for (let call = 0; call < othersAtOnce; call++) {
      othersCalls++;
      if (service.answer(category, now).kind === "refused") othersRefused++;
    }
    const spacing = (60_000 * othersAtOnce) / day.others!;
    at(now + spacing * (othersEven ? 1 : 0.5 + random()), () => other(category));
  };

  const flood = (calls: number, everyMs: number) => {
    for (const category of day.categories) wanted[category] = calls;
    look();
    at(now + everyMs, () => flood(calls, everyMs));
  };

  at(0, look);
  at(day.restartEveryMs * random(), restart);
  if (day.others !== undefined)
    for (const category of day.categories) at(comes + random() * 1_000, () => other(category));
  if (day.flood !== undefined) {
    const { calls, everyMs } = day.flood;
    at(everyMs * random(), () => flood(calls, everyMs));
  }
  for (let event = events.pop(); event !== undefined && event.at <= endMs; event = events.pop()) {
    now = event.at;
    event.run();
  }
  const learned = day.categories.reduce((sum, category) => sum + process_.ledger.others[category].total(), 0);
  return {
    ...{ calls, refused, callsPerMinute: calls / (endMs / 60_000), actions },
    ...{ othersCalls, othersRefused, learned, minutes, pollingGapMs },
  };
}

interface Stated {
  readonly kind: "answered" | "refused";
  readonly headers: { limit: number; remaining: number; resetEpochSeconds: number } | null;
  readonly dateMs: number;
  readonly retryAfterSeconds: number;
}

function createService(day: Day) {
  const limiterOf = (requests: number, burst: number): Limiter =>
    createLimiter(day.limiter, { limit: requests, burst, windowMs: 60_000, reset: day.reset });
  const categories = Object.fromEntries(
    CATEGORIES.map((category) => {
      const { requests, burst } = day.limits.categories[category];
      return [category, limiterOf(requests, burst)];
    }),
  ) as Record<Category, Limiter>;
  const rpm = day.limits.plan.requestsPerMinute;
  const plan = rpm === null ? null : limiterOf(rpm, rpm);
  return {
    answer(category: Category, now: number): Stated {
      const epoch = EPOCH_MS + now;
      const admitted = categories[category].peek(epoch).admitted && (plan?.peek(epoch).admitted ?? true);
      const ofCategory = admitted ? categories[category].take(epoch) : categories[category].peek(epoch);
      const ofPlan = admitted ? plan?.take(epoch) : plan?.peek(epoch);
      const shown = day.headers === "plan" ? (ofPlan ?? ofCategory) : ofCategory;
      return {
        kind: admitted ? "answered" : "refused",
        headers:
          day.headers === "off"
            ? null
            : {
                limit: shown.limit,
                remaining: shown.remaining,
                resetEpochSeconds: Math.floor(shown.resetEpochMs / 1_000),
              },
        dateMs: Math.floor(epoch / 1_000) * 1_000,
        retryAfterSeconds: Math.max(ofCategory.retryAfterSeconds, ofPlan?.retryAfterSeconds ?? 0),
      };
    },
  };
}

/** Keeps the list sorted, latest first, so that the next event is popped off its end. */
function insert(events: Event[], event: Event): void {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle]!.at > event.at) low = middle + 1;
    else high = middle;
  }
  events.splice(low, 0, event);
}
