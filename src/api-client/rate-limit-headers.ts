import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { TransportResponse } from "../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import { type LimitReading, parseLimitReading } from "../rate-limit/stated-limit.ts";
import { RETRY_AFTER_MS_MAX } from "../rate-limit/too-many-requests.ts";
import { asRawRecord, parseJson } from "./json-body.ts";

type Headers = TransportResponse["headers"];

/**
 * Parses X-RateLimit-* (spec, section 8.1). Returns null if limit or remaining is missing, invalid or implausible.
 */
export function parseRateLimitHeaders(headers: Headers, now: MonotonicMs): LimitReading | null {
  const limit = wholeNumber(headers["x-ratelimit-limit"]);
  const remaining = wholeNumber(headers["x-ratelimit-remaining"]);
  if (limit === null || remaining === null) return null;
  const stated = { limit, remaining, resetEpochSeconds: resetEpochSeconds(headers), dateEpochMs: serviceDate(headers) };
  return parseLimitReading(stated, now);
}

/** X-RateLimit-Reset, on the service's clock, or null if missing or invalid. */
export const resetEpochSeconds = (headers: Headers): number | null => wholeNumber(headers["x-ratelimit-reset"]);

/** The Date header, on the service's clock and truncated to a second, or null if missing or invalid. */
export const serviceDate = (headers: Headers): EpochMs | null => httpDate(headers.date);

/** Longest body of a 429 in which the wait is looked for. That of the spec has about 150 bytes. */
const LIMITED_BODY_BYTES_MAX = 4_096;

/**
 * Returns how long the service asks to wait: Retry-After or, if a 429 has none that is valid, `retry_after` of its body
 * (spec, section 7.1). Null if neither states it.
 */
export function retryAfterOf({ status, headers, body }: TransportResponse, now: EpochMs): DurationMs | null {
  const wait = parseRetryAfter(headers, now);
  if (wait !== null || status !== 429 || body.length > LIMITED_BODY_BYTES_MAX) return wait;
  const seconds = asRawRecord(parseJson(body)).retry_after;
  return typeof seconds === "number" ? boundedWait(wholeSeconds(String(seconds))) : null;
}

/**
 * Parses Retry-After (RFC 9110, section 10.2.3), in seconds or as an HTTP-date, which is compared with the Date header,
 * or with `now` if there is none. Fractions of a second are rounded up. A longer wait than {@link RETRY_AFTER_MS_MAX} is
 * cut to that. Null if missing, invalid, 0 or in the past.
 */
export function parseRetryAfter(headers: Headers, now: EpochMs): DurationMs | null {
  const text = headers["retry-after"]?.trim() ?? "";
  const date = httpDate(text);
  return boundedWait(date === null ? wholeSeconds(text) : date - (serviceDate(headers) ?? now));
}

const boundedWait = (wait: DurationMs | null): DurationMs | null =>
  wait !== null && wait > 0 ? Math.min(RETRY_AFTER_MS_MAX, wait) : null;

const wholeSeconds = (text: string): DurationMs | null =>
  /^\d{1,15}(?:\.\d*)?$/.test(text) ? Math.ceil(Number(text)) * SECOND_MS : null;

/** Parses an HTTP-date (RFC 9110, section 5.6.7). `Date.parse` alone accepts "-1" and "1.5" as days in 2001. */
function httpDate(text: string | undefined): EpochMs | null {
  if (text === undefined || !/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .* GMT$/.test(text)) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}

function wholeNumber(text: string | undefined): number | null {
  if (text === undefined || !/^\s*\d{1,15}\s*$/.test(text)) return null;
  return Number(text);
}
