import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { TransportResponse } from "../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { type LimitReading, parseLimitReading } from "../rate-limit/stated-limit.ts";
import { HOLD_MS_MAX } from "../rate-limit/too-many-requests.ts";
import { asRawRecord, parseJson } from "./json-body.ts";

type Headers = TransportResponse["headers"];

/**
 * Parses X-RateLimit-* (spec, section 8.1). A gateway may add its own values to those of the service, and the strictest
 * of each header counts. Returns null if limit or remaining is missing, invalid or implausible.
 */
export function parseRateLimitHeaders(headers: Headers, now: MonotonicMs): LimitReading | null {
  // The minimum of no values is infinite, which is implausible.
  const limit = Math.min(...wholeNumbers(headers["x-ratelimit-limit"]));
  const remaining = Math.min(...wholeNumbers(headers["x-ratelimit-remaining"]));
  const stated = { limit, remaining, resetEpochSeconds: resetEpochSeconds(headers), dateEpochMs: serviceDate(headers) };
  return parseLimitReading(stated, now);
}

/** A larger reset is in milliseconds: in seconds, it would be after the year 5000. */
const RESET_SECONDS_MAX = 1e11;

/**
 * X-RateLimit-Reset in seconds since the epoch, on the service's clock, or null if missing or invalid. The latest of
 * several counts.
 */
export function resetEpochSeconds(headers: Headers): number | null {
  const resets = wholeNumbers(headers["x-ratelimit-reset"]).map((reset) =>
    reset > RESET_SECONDS_MAX ? reset / 1_000 : reset,
  );
  return resets.length === 0 ? null : Math.max(...resets);
}

/** The Date header, on the service's clock and truncated to a second, or null if missing or invalid. */
export const serviceDate = (headers: Headers): EpochMs | null => httpDate(valuesOf(headers.date)[0]);

/** Longest body of a 429 in which the wait is looked for. That of the spec has about 150 bytes. */
const LIMITED_BODY_BYTES_MAX = 4_096;

/**
 * Returns how long the service asks to wait: Retry-After or, if a 429 has none that is valid, `retry_after` of its body
 * (spec, section 7.1). Null if neither states it.
 */
export function retryAfterOf({ status, headers, body }: TransportResponse, now: EpochMs): DurationMs | null {
  const wait = parseRetryAfter(headers, now);
  if (wait !== null || status !== 429 || body.length > LIMITED_BODY_BYTES_MAX) return wait;
  const stated = asRawRecord(parseJson(body)).retry_after;
  return typeof stated === "number" || typeof stated === "string" ? waitOf(String(stated), headers, now) : null;
}

/**
 * Parses Retry-After (RFC 9110, section 10.2.3). The longest of several waits counts. Null if there is none.
 */
export const parseRetryAfter = (headers: Headers, now: EpochMs): DurationMs | null =>
  valuesOf(headers["retry-after"])
    .map((text) => waitOf(text, headers, now))
    .reduce((longest, wait) => (wait === null || (longest ?? 0) > wait ? longest : wait), null);

/**
 * Returns a wait that is stated in seconds or as an HTTP-date, which is compared with the Date header, or with `now` if
 * there is none. Fractions of a second are rounded up. A longer wait than {@link HOLD_MS_MAX} is cut to that.
 * Null if invalid, 0 or in the past.
 */
function waitOf(stated: string, headers: Headers, now: EpochMs): DurationMs | null {
  const text = stated.trim();
  const date = httpDate(text);
  const wait = date === null ? wholeSeconds(text) : date - (serviceDate(headers) ?? now);
  return wait !== null && wait > 0 ? Math.min(HOLD_MS_MAX, wait) : null;
}

const wholeSeconds = (text: string): DurationMs | null =>
  /^\d{1,15}(?:\.\d*)?$/.test(text) ? Math.ceil(Number(text)) * SECOND_MS : null;

/** Returns the values of a header that may be repeated. A comma before the day of an HTTP-date separates no values. */
const valuesOf = (header: string | undefined): string[] =>
  header?.split(/,(?!\s*\d\d[ -])/).map((value) => value.trim()) ?? [];

/** Parses an HTTP-date (RFC 9110, section 5.6.7). `Date.parse` alone accepts "-1" and "1.5" as days in 2001. */
function httpDate(text: string | undefined): EpochMs | null {
  if (text === undefined || !/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .* GMT$/.test(text)) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}

/** Returns the values of a header, or none if one of them is not a whole number. */
function wholeNumbers(header: string | undefined): readonly number[] {
  const values = valuesOf(header);
  return values.every((text) => /^\d{1,15}$/.test(text)) ? values.map(Number) : [];
}
