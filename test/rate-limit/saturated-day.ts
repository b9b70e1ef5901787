import { type Random, seededRandom } from "../../src/base/random.ts";
import { availabilityOf } from "../../src/rate-limit/availability.ts";
import { LIMIT_SCOPES } from "../../src/rate-limit/external-usage/external-usage.ts";
import { createLedger, type Permit } from "../../src/rate-limit/ledger.ts";
import { CATEGORIES, type Category, type Lane } from "../../src/rate-limit/limits.ts";
import { type CallOutcome, settlePermit, takePermit } from "../../src/rate-limit/permits.ts";
import { parseLimitReading } from "../../src/rate-limit/stated-limit.ts";
import { createLimitedService, type LimiterSetup, type StatedHeaders } from "./limited-service.ts";

/** A simulation in which calls are always waiting. */
export interface SaturatedDay extends LimiterSetup {
  readonly hours: number;
  readonly seed: number;
  /** Mean time between two restarts of the process, which loses its calls in flight. */
  readonly restartEveryMs: number;
  readonly categories: readonly Category[];
  readonly lane: (random: Random) => Lane;
  /** Calls per minute of another user of the key in each category. */
  readonly externalCallsPerMinute?: number;
  /** Number of concurrent external calls; default 1. */
  readonly externalCallsAtOnce?: number;
  /** Whether external calls are exactly periodic; otherwise the interval varies by half. */
  readonly areExternalCallsEven?: boolean;
  /** When external calls start and end; default: the whole time. */
  readonly externalCallsDuring?: readonly [fromMs: number, untilMs: number];
  /** Number of actions that are requested together in each category, and how often. */
  readonly actionFlood?: { readonly calls: number; readonly everyMs: number };
}

export interface DayReport {
  readonly calls: number;
  readonly rejected: number;
  readonly callsPerMinute: number;
  /** Number of the calls that were actions. */
  readonly actions: number;
  /** Number of external calls, and of those that got 429. */
  readonly externalCalls: number;
  readonly externalRejected: number;
  /** External calls that the last process proved. */
  readonly provenExternalCalls: number;
  /** Our own calls by minute. */
  readonly minutes: readonly number[];
  /** Our own calls with 429 by minute. */
  readonly minutesWithRejections: readonly number[];
  /** Longest time without a polling call. */
  readonly pollingGapMs: number;
}

/** An event of the simulation. */
export interface Event {
  readonly at: number;
  run(): void;
}

/** Runs the ledger against the simulator's limiters, with latencies, lost responses and restarts. */
export function simulateDay(day: SaturatedDay): DayReport {
  const random = seededRandom(day.seed);
  const endMs = day.hours * 3_600_000;
  const service = createLimitedService(day);
  const events: Event[] = [];
  const at = (time: number, run: () => void) => insert(events, { at: time, run });
  let now = 0;
  let daemon = { ledger: createLedger(day.limits, 0), alive: true };
  let wakeAt = Number.POSITIVE_INFINITY;
  let calls = 0;
  let rejected = 0;
  let externalCalls = 0;
  let externalRejected = 0;
  const minutes: number[] = new Array(Math.ceil(day.hours * 60)).fill(0);
  const minutesWithRejections: number[] = minutes.slice();
  let actions = 0;
  let polledAt = 0;
  let pollingGapMs = 0;
  const wanted = Object.fromEntries(CATEGORIES.map((category) => [category, 0])) as Record<Category, number>;

  const send = (permit: Permit, owner: typeof daemon) => {
    calls++;
    minutes[Math.floor(now / 60_000)]!++;
    const arrives = now + 1 + random() * 100;
    const lost = random() < 0.002;
    at(arrives, () => {
      const answer = service.answer(permit.category, now);
      if (answer.kind === "refused") {
        rejected++;
        minutesWithRejections[Math.floor(now / 60_000)]!++;
      }
      at(now + 1 + random() * 100, () => {
        if (!owner.alive) return;
        settlePermit(owner.ledger, permit, lost ? { kind: "lost" } : read(answer), random(), now);
        tryNextCall();
      });
    });
  };

  const tryNextCall = () => {
    let next = Number.POSITIVE_INFINITY;
    for (const category of day.categories) {
      while (wanted[category] > 0) {
        const availability = availabilityOf(daemon.ledger, category, "action", now);
        if (availability.at > now) {
          next = Math.min(next, availability.at);
          break;
        }
        wanted[category]--;
        actions++;
        send(takePermit(daemon.ledger, category, "action", now), daemon);
      }
      for (;;) {
        const lane = day.lane(random);
        const availability = availabilityOf(daemon.ledger, category, lane, now);
        if (availability.at > now) {
          next = Math.min(next, availability.at);
          break;
        }
        pollingGapMs = Math.max(pollingGapMs, now - polledAt);
        polledAt = now;
        send(takePermit(daemon.ledger, category, lane, now), daemon);
      }
    }
    if (next < wakeAt) {
      wakeAt = next;
      at(next, () => {
        if (wakeAt !== next) return;
        wakeAt = Number.POSITIVE_INFINITY;
        tryNextCall();
      });
    }
  };

  const read = (answer: StatedHeaders): CallOutcome => {
    const reading =
      answer.headers === null ? null : parseLimitReading({ ...answer.headers, dateEpochMs: answer.dateMs }, now);
    return answer.kind === "answered"
      ? { kind: "answered", reading }
      : { kind: "refused", reading, retryAfterMs: millisecondsOf(answer.retryAfterSeconds) };
  };

  const restart = () => {
    daemon.alive = false;
    daemon = { ledger: createLedger(day.limits, now), alive: true };
    tryNextCall();
    at(now - Math.log(1 - random()) * day.restartEveryMs, restart);
  };
  const {
    externalCallsAtOnce = 1,
    areExternalCallsEven = false,
    externalCallsDuring: [startsAt, endsAt] = [0, endMs],
  } = day;
  const callExternally = (category: Category) => {
    if (now > endsAt) return;
    for (let call = 0; call < externalCallsAtOnce; call++) {
      externalCalls++;
      if (service.answer(category, now).kind === "refused") externalRejected++;
    }
    const spacing = (60_000 * externalCallsAtOnce) / day.externalCallsPerMinute!;
    at(now + spacing * (areExternalCallsEven ? 1 : 0.5 + random()), () => callExternally(category));
  };

  const requestActions = (calls: number, everyMs: number) => {
    for (const category of day.categories) wanted[category] = calls;
    tryNextCall();
    at(now + everyMs, () => requestActions(calls, everyMs));
  };

  at(0, tryNextCall);
  at(day.restartEveryMs * random(), restart);
  if (day.externalCallsPerMinute !== undefined)
    for (const category of day.categories) at(startsAt + random() * 1_000, () => callExternally(category));
  if (day.actionFlood !== undefined) {
    const { calls, everyMs } = day.actionFlood;
    at(everyMs * random(), () => requestActions(calls, everyMs));
  }
  for (let event = events.pop(); event !== undefined && event.at <= endMs; event = events.pop()) {
    now = event.at;
    event.run();
  }
  const proven = LIMIT_SCOPES.reduce((sum, scope) => sum + daemon.ledger.externalUsage[scope].provenCalls(), 0);
  return {
    calls,
    rejected,
    callsPerMinute: calls / (endMs / 60_000),
    actions,
    ...{
      externalCalls,
      externalRejected,
      provenExternalCalls: proven,
      minutes,
      minutesWithRejections,
      pollingGapMs,
    },
  };
}

const millisecondsOf = (seconds: number | null): number | null => (seconds === null ? null : seconds * 1_000);

/** Inserts an event into a list that is sorted by time, latest first. */
export function insert(events: Event[], event: Event): void {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle]!.at > event.at) low = middle + 1;
    else high = middle;
  }
  events.splice(low, 0, event);
}
