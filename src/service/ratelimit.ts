import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import { type Reading, reading } from "../budget/view.ts";
import type { ServiceResponse } from "../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

type Headers = ServiceResponse["headers"];

/** Reads X-RateLimit-* (spec, section 8.1); null where limit or remaining is missing or no whole number. */
export function rateLimitReading(headers: Headers, now: MonotonicMs): Reading | null {
  const limit = wholeNumber(headers["x-ratelimit-limit"]);
  const remaining = wholeNumber(headers["x-ratelimit-remaining"]);
  if (limit === null || remaining === null) return null;
  const resetEpochSeconds = wholeNumber(headers["x-ratelimit-reset"]);
  return reading({ limit, remaining, resetEpochSeconds, dateEpochMs: serviceDate(headers) }, now);
}

/** When X-RateLimit-Reset says that the limit resets, on the service's clock; null where it says nothing. */
export const resetEpochSeconds = (headers: Headers): number | null => wholeNumber(headers["x-ratelimit-reset"]);

/** The service's own time (header Date, cut to whole seconds); null where it is missing or unreadable. */
export function serviceDate(headers: Headers): EpochMs | null {
  const at = Date.parse(headers.date ?? "");
  return Number.isNaN(at) ? null : at;
}

/**
 * Reads Retry-After (RFC 9110, section 10.2.3), in seconds or as an HTTP-date, which is counted from the answer's own
 * Date, or from `now` without one. Null where it is missing or unreadable; a moment gone by is 0.
 */
export function retryAfter(headers: Headers, now: EpochMs): DurationMs | null {
  const text = headers["retry-after"]?.trim();
  if (text === undefined || text === "") return null;
  const seconds = wholeNumber(text);
  if (seconds !== null) return seconds * SECOND_MS;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - (serviceDate(headers) ?? now));
}

function wholeNumber(text: string | undefined): number | null {
  if (text === undefined || !/^\s*\d{1,15}\s*$/.test(text)) return null;
  return Number(text);
}
