import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DAY_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { createLedger, settle, take } from "../../src/rate-limit/ledger.ts";
import { CATEGORIES } from "../../src/rate-limit/limits.ts";
import { opening } from "../../src/rate-limit/availability.ts";
import { rateLimitReading, retryAfter } from "../../src/api-client/rate-limit-headers.ts";
import { endlessLimits } from "./limited-service.ts";

const START_MS = Date.UTC(2026, 2, 1);
/**
 * Whatever X-RateLimit headers say, a call goes out within a window and its rounding, or within ten learned windows; and
 * whatever the Retry-After of a 5xx says, within a quarter of an hour.
 */
const WAIT_MS_MAX = 15 * MINUTE_MS + 2 * SECOND_MS;
/** Whatever Retry-After says. */
const ASKED_WAIT_MS_MAX = 31 * DAY_MS;

const odd = fc.constantFrom("0", "-1", "1.5", "", " ", "NaN", "Infinity", "1e9", "999999999999999", "100, 100", "abc");
const count = fc.oneof(
  odd,
  fc.nat(3).map(String),
  fc.integer({ min: 90, max: 210 }).map(String),
  fc.nat(1e15).map(String),
);
/** Seconds from the answer, or anything. */
const reset = fc.oneof(odd, fc.integer({ min: -100, max: 200 }), fc.integer({ min: -1e12, max: 1e12 }));
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
  retryAfter: fc.option(fc.oneof(odd, fc.nat(20).map(String), fc.nat(1e15).map(String)), { nil: undefined }),
  jitter: fc.double({ min: 0, max: 0.999, noNaN: true }),
});

const answers = fc.array(answer, { minLength: 50, maxLength: 400, size: "max" });
const fineAnswers = answers.map((all) => all.map((said) => ({ ...said, status: 200 as const })));

type Answer = typeof answer extends fc.Arbitrary<infer Value> ? Value : never;

function headersOf(said: Answer, nowMs: number): Record<string, string> {
  const entries = {
    "x-ratelimit-limit": said.limit,
    "x-ratelimit-remaining": said.remaining,
    "x-ratelimit-reset":
      typeof said.reset === "number" ? String(Math.floor(nowMs / SECOND_MS) + said.reset) : said.reset,
    date: said.date === "true" ? new Date(nowMs).toUTCString() : said.date,
    "retry-after": said.retryAfter,
  };
  return Object.fromEntries(
    Object.entries(entries).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/** Plays the answers, one call after another, each as soon as it may go. */
function play(answers: readonly Answer[], onWait: (waitMs: number) => void) {
  const ledger = createLedger(endlessLimits("business"), 0, 0);
  let now = 0;
  for (const said of answers) {
    const { at } = opening(ledger, said.category, "detail", now);
    onWait(at - now);
    now = Math.max(now, at);
    const permit = take(ledger, said.category, "detail", now);
    now += 50;
    const headers = headersOf(said, START_MS + now);
    const reading = rateLimitReading(headers, now);
    const retryAfterMs = retryAfter(headers, START_MS + now);
    if (said.status === 429) settle(ledger, permit, { kind: "refused", reading, retryAfterMs }, said.jitter, now);
    else {
      const asked = said.status >= 500 ? retryAfterMs : null;
      settle(ledger, permit, { kind: "answered", reading, retryAfterMs: asked }, said.jitter, now);
    }
  }
  return { ledger, now };
}

describe("hundreds of answers with arbitrary headers", () => {
  test("never stop polling for longer than a stated time", () => {
    fc.assert(
      fc.property(answers, (all) => {
        const asks = all.some(({ status }) => status === 429);
        play(all, (waitMs) => expect(waitMs).toBeLessThanOrEqual(asks ? ASKED_WAIT_MS_MAX + SECOND_MS : WAIT_MS_MAX));
      }),
      { numRuns: 100 },
    );
  });

  test("without a refusal or an overload, never for longer than a window and its rounding", () => {
    fc.assert(
      fc.property(fineAnswers, (all) => {
        play(all, (waitMs) => expect(waitMs).toBeLessThanOrEqual(MINUTE_MS + 2 * SECOND_MS));
      }),
      { numRuns: 200 },
    );
  });

  test("never count more calls of others in the month than the limits allow them", () => {
    fc.assert(
      fc.property(fineAnswers, (all) => {
        const { ledger, now } = play(all, () => {});
        // A full bucket may be emptied by others beside a window's calls.
        const windows = now / MINUTE_MS + 10;
        expect(ledger.others.node_management.likely()).toBeLessThanOrEqual(100 * windows);
        expect(ledger.others.session_monitoring.likely()).toBeLessThanOrEqual(500 * windows);
        expect(ledger.others.plan.likely()).toBeLessThanOrEqual(500 * windows);
      }),
      { numRuns: 200 },
    );
  });
});
