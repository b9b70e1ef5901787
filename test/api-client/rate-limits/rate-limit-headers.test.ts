import { expect, onTestFinished, test } from "vitest";
import {
  parseRateLimitHeaders,
  parseRetryAfter,
  resetEpochSeconds,
  retryAfterOf,
} from "../../../src/api-client/rate-limit-headers.ts";
import { createTransport } from "../../../src/api-client/transport.ts";
import { HOUR_MS } from "../../../src/base/duration.ts";
import { neverAnswers, startHttpServer } from "../transport/http-server.ts";

const NOW = Date.UTC(2026, 2, 1);

test.each([
  ["7", 7_000],
  [" 7 ", 7_000],
  ["1.5", 2_000],
  ["7, 30", 30_000],
  ["30,0", 30_000],
  ["7, soon", 7_000],
  ["Sun, 01 Mar 2026 00:00:30 GMT, Sun, 01 Mar 2026 00:00:07 GMT", 30_000],
  ["21600", 6 * HOUR_MS],
  ["21601", 6 * HOUR_MS],
  ["999999999999999", 6 * HOUR_MS],
  ["Fri, 01 Jan 9999 00:00:00 GMT", 6 * HOUR_MS],
  ["Sun, 01 Mar 2026 00:00:30 GMT", 30_000],
  ["Sunday, 01-Mar-26 00:00:30 GMT", 30_000],
  ["0", null],
  ["0.0", null],
  ["-1", null],
  ["", null],
  ["soon", null],
  ["Infinity", null],
  ["Sat, 28 Feb 2026 23:59:00 GMT", null],
])("Retry-After %j means a wait of %s ms", (text, wait) => {
  expect(parseRetryAfter({ "retry-after": text }, NOW)).toBe(wait);
});

test.each([
  [429, {}, '{"error":"rate_limit_exceeded","retry_after":30}', 30_000],
  [429, { "retry-after": "soon" }, '{"retry_after":30}', 30_000],
  [429, { "retry-after": "7" }, '{"retry_after":30}', 7_000],
  [503, {}, '{"retry_after":30}', null],
  [429, {}, '{"retry_after":"30"}', 30_000],
  [429, {}, '{"retry_after":" 30 "}', 30_000],
  [429, {}, '{"retry_after":"soon"}', null],
  [429, {}, '{"retry_after":0}', null],
  [429, {}, '{"retry_after":-30}', null],
  [429, {}, '{"retry_after":0.2}', 1_000],
  [429, {}, '{"retry_after":1e9}', 6 * HOUR_MS],
  [429, {}, '{"retry_after":1e21}', null],
  [429, {}, '{"retry_after":1e400}', null],
  [429, {}, '{"retry_after":[30]}', null],
  [429, {}, '[{"retry_after":30}]', null],
  [429, {}, "<html>", null],
  [429, {}, "null", null],
  [429, {}, `{"retry_after":30,"padding":"${"x".repeat(5_000)}"}`, null],
])("a %d with the headers %j and the body %s asks to wait %s ms", (status, headers, body, wait) => {
  expect(retryAfterOf({ status, headers, body: Buffer.from(body) }, NOW)).toBe(wait);
});

test("an HTTP-date in Retry-After is compared with the Date header", () => {
  const headers = { "retry-after": "Sun, 01 Mar 2026 01:00:10 GMT", date: "Sun, 01 Mar 2026 01:00:00 GMT" };
  expect(parseRetryAfter(headers, NOW)).toBe(10_000);
});

const limits = (limit: string, remaining: string) =>
  parseRateLimitHeaders({ "x-ratelimit-limit": limit, "x-ratelimit-remaining": remaining }, 0);

test.each([
  ["0", "0"],
  ["-1", "0"],
  ["100", "-1"],
  ["100", "1001"],
  ["1e2", "5"],
  ["999999999999999", "5"],
])("a limit of %s with %s remaining is implausible and ignored", (limit, remaining) => {
  expect(limits(limit, remaining)).toBeNull();
});

test.each([
  ["100, 50", "40, 10", { limit: 50, remaining: 10 }],
  ["50,100", "10", { limit: 50, remaining: 10 }],
  ["100, 100", "40, 40", { limit: 100, remaining: 40 }],
  ["100, none", "40", null],
  ["100;w=60", "40", null],
  ["100,", "40", null],
])("of the repeated limits %j with %j remaining the strictest counts", (limit, remaining, reading) => {
  expect(limits(limit, remaining)).toEqual(reading === null ? null : { ...reading, resetAt: null });
});

test("of repeated resets the latest counts, and of repeated Dates the first", () => {
  const headers = {
    "x-ratelimit-limit": "100",
    "x-ratelimit-remaining": "5",
    "x-ratelimit-reset": `${NOW / 1_000 + 10}, ${NOW / 1_000 + 60}`,
    date: "Sun, 01 Mar 2026 00:00:00 GMT, Sun, 01 Mar 2026 00:00:09 GMT",
  };
  expect(parseRateLimitHeaders(headers, 0)?.resetAt).toBe(61_000);
});

test("twice the limit may remain", () => {
  expect(limits("100", "200")).toEqual({ limit: 100, remaining: 200, resetAt: null });
});

test.each([
  ["a minute ahead", 60, 61_000],
  ["a minute ago", -60, null],
  ["a year ahead", 365 * 24 * 3_600, null],
])("a reset %s counts only if it is in the future and within a month", (_, after, resetAt) => {
  const headers = {
    "x-ratelimit-limit": "100",
    "x-ratelimit-remaining": "5",
    "x-ratelimit-reset": String(NOW / 1_000 + after),
    date: new Date(NOW).toUTCString(),
  };
  expect(parseRateLimitHeaders(headers, 0)?.resetAt).toBe(resetAt);
});

test("a reset in milliseconds is converted to seconds", () => {
  const headers = { "x-ratelimit-reset": String(NOW + 60_000) };
  expect(resetEpochSeconds(headers)).toBe(NOW / 1_000 + 60);
});

test("limits that are in several headers are read as a list", async () => {
  const headers = { "X-RateLimit-Limit": ["100", "50"], "X-RateLimit-Remaining": ["40", "10"] };
  const { url } = await startHttpServer(() => ({ headers }));
  const transport = createTransport({ baseUrl: url });
  onTestFinished(() => transport.close());
  const answer = await transport.request({ method: "GET", path: "/v1/nodes", headers: {} }, neverAnswers);
  expect(answer.ok && parseRateLimitHeaders(answer.value.headers, 0)).toMatchObject({ limit: 50, remaining: 10 });
});
