import { type Random, seededRandom } from "../../../src/base/random.ts";
import { availabilityOf } from "../../../src/rate-limit/availability.ts";
import { LIMIT_SCOPES } from "../../../src/rate-limit/external-usage/external-usage.ts";
import { createLedger, type Ledger, type Permit } from "../../../src/rate-limit/ledger.ts";
import type { Category, Lane } from "../../../src/rate-limit/limits.ts";
import { type CallOutcome, settlePermit, takePermit } from "../../../src/rate-limit/permits.ts";
import { parseLimitReading } from "../../../src/rate-limit/stated-limit.ts";
import { createLimitedService, type LimiterSetup, type StatedHeaders } from "../limited-service.ts";

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
export const simulateDay = (day: SaturatedDay): DayReport => new DayRun(day).run();

class DayRun {
  readonly #day: SaturatedDay;
  readonly #endMs: number;
  readonly #random: Random;
  readonly #service: ReturnType<typeof createLimitedService>;
  readonly #events: Event[] = [];
  #now = 0;
  #daemon: { readonly ledger: Ledger; alive: boolean };
  /** When the next event tries to make a call. */
  #wakeAt = Number.POSITIVE_INFINITY;
  #polledAt = 0;
  /** Actions that are requested and not yet sent. */
  readonly #wanted = new Map<Category, number>();
  readonly #counts = { calls: 0, rejected: 0, actions: 0, externalCalls: 0, externalRejected: 0, pollingGapMs: 0 };
  readonly #minutes: number[];
  readonly #minutesWithRejections: number[];

  constructor(day: SaturatedDay) {
    this.#day = day;
    this.#endMs = day.hours * 3_600_000;
    this.#random = seededRandom(day.seed);
    this.#service = createLimitedService(day);
    this.#daemon = { ledger: createLedger(day.limits, 0), alive: true };
    this.#minutes = new Array(Math.ceil(day.hours * 60)).fill(0);
    this.#minutesWithRejections = this.#minutes.slice();
  }

  run(): DayReport {
    this.#scheduleFirstEvents();
    for (let event = this.#events.pop(); event !== undefined && event.at <= this.#endMs; event = this.#events.pop()) {
      this.#now = event.at;
      event.run();
    }
    const { externalUsage } = this.#daemon.ledger;
    return {
      ...this.#counts,
      callsPerMinute: this.#counts.calls / (this.#endMs / 60_000),
      provenExternalCalls: LIMIT_SCOPES.reduce((sum, scope) => sum + externalUsage[scope].provenCalls(), 0),
      minutes: this.#minutes,
      minutesWithRejections: this.#minutesWithRejections,
    };
  }

  #scheduleFirstEvents(): void {
    const { restartEveryMs, externalCallsPerMinute, externalCallsDuring, categories, actionFlood } = this.#day;
    this.#at(0, () => this.#tryNextCall());
    this.#at(restartEveryMs * this.#random(), () => this.#restart());
    const startsAt = externalCallsDuring?.[0] ?? 0;
    if (externalCallsPerMinute !== undefined)
      for (const category of categories)
        this.#at(startsAt + this.#random() * 1_000, () => this.#callExternally(category));
    if (actionFlood !== undefined)
      this.#at(actionFlood.everyMs * this.#random(), () => this.#requestActions(actionFlood));
  }

  #at(time: number, run: () => void): void {
    insert(this.#events, { at: time, run });
  }

  /** Sends every call that the ledger allows now, and schedules the next attempt. */
  #tryNextCall(): void {
    const next = Math.min(...this.#day.categories.map((category) => this.#sendCalls(category)));
    if (next >= this.#wakeAt) return;
    this.#wakeAt = next;
    this.#at(next, () => {
      if (this.#wakeAt !== next) return;
      this.#wakeAt = Number.POSITIVE_INFINITY;
      this.#tryNextCall();
    });
  }

  /** Sends the requested actions and then polling calls, and returns when the next call is allowed. */
  #sendCalls(category: Category): number {
    let actionAllowedAt = Number.POSITIVE_INFINITY;
    for (let left = this.#wanted.get(category) ?? 0; left > 0; left--) {
      const allowedAt = this.#sendCall(category, "action");
      if (allowedAt > this.#now) {
        actionAllowedAt = allowedAt;
        break;
      }
      this.#wanted.set(category, left - 1);
      this.#counts.actions++;
    }
    for (;;) {
      const allowedAt = this.#sendCall(category, this.#day.lane(this.#random));
      if (allowedAt > this.#now) return Math.min(actionAllowedAt, allowedAt);
      this.#counts.pollingGapMs = Math.max(this.#counts.pollingGapMs, this.#now - this.#polledAt);
      this.#polledAt = this.#now;
    }
  }

  /** Sends a call if the ledger allows it now, and returns when it allows it. */
  #sendCall(category: Category, lane: Lane): number {
    const { ledger } = this.#daemon;
    const { at } = availabilityOf(ledger, category, lane, this.#now);
    if (at <= this.#now) this.#send(takePermit(ledger, category, lane, this.#now));
    return at;
  }

  #send(permit: Permit): void {
    const owner = this.#daemon;
    this.#counts.calls++;
    this.#minutes[Math.floor(this.#now / 60_000)]!++;
    const arrives = this.#now + 1 + this.#random() * 100;
    const lost = this.#random() < 0.002;
    this.#at(arrives, () => {
      const answer = this.#service.answer(permit.category, this.#now);
      if (answer.kind === "rate_limited") {
        this.#counts.rejected++;
        this.#minutesWithRejections[Math.floor(this.#now / 60_000)]!++;
      }
      this.#at(this.#now + 1 + this.#random() * 100, () => {
        if (!owner.alive) return;
        const outcome: CallOutcome = lost ? { kind: "lost" } : this.#read(answer);
        settlePermit(owner.ledger, permit, outcome, this.#random(), this.#now);
        this.#tryNextCall();
      });
    });
  }

  #read({ kind, headers, dateMs, retryAfterSeconds }: StatedHeaders): CallOutcome {
    const reading = headers === null ? null : parseLimitReading({ ...headers, dateEpochMs: dateMs }, this.#now);
    return kind === "answered"
      ? { kind: "answered", reading }
      : { kind: "rate_limited", reading, retryAfterMs: millisecondsOf(retryAfterSeconds) };
  }

  #restart(): void {
    this.#daemon.alive = false;
    this.#daemon = { ledger: createLedger(this.#day.limits, this.#now), alive: true };
    this.#tryNextCall();
    this.#at(this.#now - Math.log(1 - this.#random()) * this.#day.restartEveryMs, () => this.#restart());
  }

  #callExternally(category: Category): void {
    const { externalCallsAtOnce = 1, areExternalCallsEven = false, externalCallsDuring } = this.#day;
    if (this.#now > (externalCallsDuring?.[1] ?? this.#endMs)) return;
    for (let call = 0; call < externalCallsAtOnce; call++) {
      this.#counts.externalCalls++;
      if (this.#service.answer(category, this.#now).kind === "rate_limited") this.#counts.externalRejected++;
    }
    const spacing = (60_000 * externalCallsAtOnce) / this.#day.externalCallsPerMinute!;
    const factor = areExternalCallsEven ? 1 : 0.5 + this.#random();
    this.#at(this.#now + spacing * factor, () => this.#callExternally(category));
  }

  #requestActions(flood: NonNullable<SaturatedDay["actionFlood"]>): void {
    for (const category of this.#day.categories) this.#wanted.set(category, flood.calls);
    this.#tryNextCall();
    this.#at(this.#now + flood.everyMs, () => this.#requestActions(flood));
  }
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
