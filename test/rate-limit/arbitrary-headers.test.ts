import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseRateLimitHeaders, parseRetryAfter } from "../../src/api-client/rate-limit-headers.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { availabilityOf } from "../../src/rate-limit/availability.ts";
import { createLedger } from "../../src/rate-limit/ledger.ts";
import { CATEGORIES } from "../../src/rate-limit/limits.ts";
import { settlePermit, takePermit } from "../../src/rate-limit/permits.ts";
import { propertyRuns } from "../harness/run-length.ts";
import { limitsWithoutPlan } from "./limited-service.ts";

const START_MS = Date.UTC(2026, 2, 1);
/**
 * Maximum wait without a 429: a window and its rounding, ten windows of a learned limit, or a quarter of an hour after
 * a 5xx with Retry-After.
 */
const WAIT_MS_MAX = 15 * MINUTE_MS + 2 * SECOND_MS;
/** Maximum wait after a 429. */
const REJECTED_WAIT_MS_MAX = 6 * HOUR_MS;

const unusualValues = fc.constantFrom(
  "0",
  "-1",
  "1.5",
  "",
  " ",
  "NaN",
  "Infinity",
  "1e9",
  "999999999999999",
  "100, 100",
  "abc",
);
const count = fc.oneof(
  unusualValues,
  fc.nat(3).map(String),
  fc.integer({ min: 90, max: 210 }).map(String),
  fc.nat(1e15).map(String),
);
/** Seconds after the response, or arbitrary text. */
const reset = fc.oneof(unusualValues, fc.integer({ min: -100, max: 200 }), fc.integer({ min: -1e12, max: 1e12 }));
const answer = fc.record({
  category: fc.constantFrom(...CATEGORIES),
  status: fc.constantFrom(200, 200, 200, 200, 404, 429, 502, 503),
  limit: fc.option(count, { nil: undefined }),
  remaining: fc.option(count, { nil: undefined }),
  reset: fc.option(reset, { nil: undefined }),
  date: fc.constantFrom(
    "true",
    "true",
    "true",
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "-1",
    "x",
  ),
  retryAfter: fc.option(fc.oneof(unusualValues, fc.nat(20).map(String), fc.nat(1e15).map(String)), { nil: undefined }),
  jitter: fc.double({ min: 0, max: 0.999, noNaN: true }),
});

const answers = fc.array(answer, { minLength: 50, maxLength: 400, size: "max" });
const successes = answers.map((all) => all.map((received) => ({ ...received, status: 200 as const })));

type Answer = typeof answer extends fc.Arbitrary<infer Value> ? Value : never;

function headersOf(received: Answer, nowMs: number): Record<string, string> {
  const entries = {
    "x-ratelimit-limit": received.limit,
    "x-ratelimit-remaining": received.remaining,
    "x-ratelimit-reset":
      typeof received.reset === "number" ? String(Math.floor(nowMs / SECOND_MS) + received.reset) : received.reset,
    date: received.date === "true" ? new Date(nowMs).toUTCString() : received.date,
    "retry-after": received.retryAfter,
  };
  return Object.fromEntries(
    Object.entries(entries).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/** Makes sequential calls with these responses, each as soon as it is available. */
function playAnswers(answers: readonly Answer[]) {
  const ledger = createLedger(limitsWithoutPlan("business"), 0);
  let now = 0;
  let longestWaitMs = 0;
  for (const received of answers) {
    const { at } = availabilityOf(ledger, received.category, "detail", now);
    longestWaitMs = Math.max(longestWaitMs, at - now);
    now = Math.max(now, at);
    const permit = takePermit(ledger, received.category, "detail", now);
    now += 50;
    const headers = headersOf(received, START_MS + now);
    const reading = parseRateLimitHeaders(headers, now);
    const retryAfterMs = parseRetryAfter(headers, START_MS + now);
    if (received.status === 429)
      settlePermit(ledger, permit, { kind: "rate_limited", reading, retryAfterMs }, received.jitter, now);
    else {
      const requestedMs = received.status >= 500 ? retryAfterMs : null;
      settlePermit(ledger, permit, { kind: "answered", reading, retryAfterMs: requestedMs }, received.jitter, now);
    }
  }
  return { ledger, now, longestWaitMs };
}

describe("hundreds of responses with arbitrary headers", () => {
  test("never stop polling for longer than the maximum wait", () => {
    fc.assert(
      fc.property(answers, (all) => {
        const hasRejection = all.some(({ status }) => status === 429);
        const { longestWaitMs } = playAnswers(all);
        expect(longestWaitMs).toBeLessThanOrEqual(hasRejection ? REJECTED_WAIT_MS_MAX + SECOND_MS : WAIT_MS_MAX);
      }),
      propertyRuns(250),
    );
  });

  test("never stop polling for longer than a window and its rounding without a 429 or 5xx", () => {
    fc.assert(
      fc.property(successes, (all) => {
        expect(playAnswers(all).longestWaitMs).toBeLessThanOrEqual(MINUTE_MS + 2 * SECOND_MS);
      }),
      propertyRuns(500),
    );
  });

  test("never count more external calls in the month than the limits allow", () => {
    fc.assert(
      fc.property(successes, (all) => {
        const { ledger, now } = playAnswers(all);
        // Others may also empty a full bucket.
        const windows = now / MINUTE_MS + 10;
        expect(ledger.externalUsage.node_management.likelyCalls()).toBeLessThanOrEqual(100 * windows);
        expect(ledger.externalUsage.session_monitoring.likelyCalls()).toBeLessThanOrEqual(500 * windows);
        expect(ledger.externalUsage.plan.likelyCalls()).toBeLessThanOrEqual(500 * windows);
      }),
      propertyRuns(500),
    );
  });
});
