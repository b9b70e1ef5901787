import { type Random, seededRandom } from "../../src/base/random.ts";
import { availabilityOf } from "../../src/rate-limit/availability.ts";
import { LIMIT_SCOPES } from "../../src/rate-limit/external-usage/external-usage.ts";
import { createLedger, type Permit } from "../../src/rate-limit/ledger.ts";
import { parseLimitReading } from "../../src/rate-limit/limit-headers.ts";
import { CATEGORIES, type Category, type Lane } from "../../src/rate-limit/limits.ts";
import { type CallOutcome, settlePermit, takePermit } from "../../src/rate-limit/permits.ts";
import { createLimitedService, type LimiterSetup, type StatedHeaders } from "./limited-service.ts";

/** One simulated stretch of time in which the ledger's owner always has another call to make. */
export interface SaturatedDay extends LimiterSetup {
  readonly hours: number;
  readonly seed: number;
  /** Mean time between two kills of the process; its calls in flight are never answered. */
  readonly restartEveryMs: number;
  readonly categories: readonly Category[];
  readonly lane: (random: Random) => Lane;
  /** Calls a minute that another user of the key makes, in each category. */
  readonly externalCallsPerMinute?: number;
  /** It makes so many of them at once; 1 unless said. */
  readonly externalCallsAtOnce?: number;
  /** Its spacing is exact; else it varies by half. */
  readonly areExternalCallsEven?: boolean;
  /** When it comes and goes; it is there all the time unless said. */
  readonly doExternalCallsContinue?: readonly [fromMs: number, untilMs: number];
  /** So many calls of the lane `action` are wanted at once in each category, each time that long after the last. */
  readonly actionFlood?: { readonly calls: number; readonly everyMs: number };
}

export interface DayReport {
  readonly calls: number;
  readonly rejected: number;
  readonly callsPerMinute: number;
  /** Of the calls, those of the flood. */
  readonly actions: number;
  /** Calls of the other user, and those of them that were refused. */
  readonly externalCalls: number;
  readonly externalRejected: number;
  /** Calls of others that the last process learned of. */
  readonly learnedLimits: number;
  /** Our own calls, minute by minute. */
  readonly minutes: readonly number[];
  /** Those of them that were refused. */
  readonly minutesWithRejections: readonly number[];
  /** Longest time in which no call but the flood's went out. */
  readonly pollingGapMs: number;
}

/** Something that happens at its time. */
export interface Event {
  readonly at: number;
  run(): void;
}

/** Drives the ledger against the simulator's own limiters, with latencies, lost answers and restarts. */
export function simulateDay(day: SaturatedDay): DayReport {
  const random = seededRandom(day.seed);
  const endMs = day.hours * 3_600_000;
  const service = createLimitedService(day);
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
  const minutesRefused: number[] = minutes.slice();
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
      if (answer.kind === "refused") {
        refused++;
        minutesRefused[Math.floor(now / 60_000)]!++;
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
        const opens = availabilityOf(process_.ledger, category, "action", now);
        if (opens.at > now) {
          next = Math.min(next, opens.at);
          break;
        }
        wanted[category]--;
        actions++;
        send(takePermit(process_.ledger, category, "action", now), process_);
      }
      for (;;) {
        const lane = day.lane(random);
        const opens = availabilityOf(process_.ledger, category, lane, now);
        if (opens.at > now) {
          next = Math.min(next, opens.at);
          break;
        }
        pollingGapMs = Math.max(pollingGapMs, now - polledAt);
        polledAt = now;
        send(takePermit(process_.ledger, category, lane, now), process_);
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
    const told =
      answer.headers === null ? null : parseLimitReading({ ...answer.headers, dateEpochMs: answer.dateMs }, now);
    return answer.kind === "answered"
      ? { kind: "answered", reading: told }
      : { kind: "refused", reading: told, retryAfterMs: millisecondsOf(answer.retryAfterSeconds) };
  };

  const restart = () => {
    process_.alive = false;
    process_ = { ledger: createLedger(day.limits, 0, now), alive: true };
    tryNextCall();
    at(now - Math.log(1 - random()) * day.restartEveryMs, restart);
  };
  const {
    externalCallsAtOnce: othersAtOnce = 1,
    areExternalCallsEven: othersEven = false,
    doExternalCallsContinue: [comes, goes] = [0, endMs],
  } = day;
  const other = (category: Category) => {
    if (now > goes) return;
    for (let call = 0; call < othersAtOnce; call++) {
      othersCalls++;
      if (service.answer(category, now).kind === "refused") othersRefused++;
    }
    const spacing = (60_000 * othersAtOnce) / day.externalCallsPerMinute!;
    at(now + spacing * (othersEven ? 1 : 0.5 + random()), () => other(category));
  };

  const flood = (calls: number, everyMs: number) => {
    for (const category of day.categories) wanted[category] = calls;
    tryNextCall();
    at(now + everyMs, () => flood(calls, everyMs));
  };

  at(0, tryNextCall);
  at(day.restartEveryMs * random(), restart);
  if (day.externalCallsPerMinute !== undefined)
    for (const category of day.categories) at(comes + random() * 1_000, () => other(category));
  if (day.actionFlood !== undefined) {
    const { calls, everyMs } = day.actionFlood;
    at(everyMs * random(), () => flood(calls, everyMs));
  }
  for (let event = events.pop(); event !== undefined && event.at <= endMs; event = events.pop()) {
    now = event.at;
    event.run();
  }
  const learned = LIMIT_SCOPES.reduce((sum, scope) => sum + process_.ledger.externalUsage[scope].provenCalls(), 0);
  return {
    ...{ calls, rejected: refused, callsPerMinute: calls / (endMs / 60_000), actions },
    ...{
      externalCalls: othersCalls,
      externalRejected: othersRefused,
      learnedLimits: learned,
      minutes,
      minutesWithRejections: minutesRefused,
      pollingGapMs,
    },
  };
}

const millisecondsOf = (seconds: number | null): number | null => (seconds === null ? null : seconds * 1_000);

/** Keeps the list sorted, latest first, so that the next event is popped off its end. */
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
