import { parseDuration } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import type { EpochMs } from "../../model/time.ts";

const MOMENT_PATTERN = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)(Z|[+-]\d\d:\d\d)?)?$/;

/**
 * Reads a moment of the past: ISO 8601, in UTC unless it says otherwise, or how long ago it was, such as `2h`. The
 * error says what it must be.
 */
export function parseTime(text: string, now: EpochMs): Result<EpochMs, string> {
  const ago = parseDuration(text);
  if (ago.ok && ago.value <= now) return ok(now - ago.value);
  const [, date, time = "00:00", zone = "Z"] = MOMENT_PATTERN.exec(text) ?? [];
  const at = date === undefined ? Number.NaN : Date.parse(`${date}T${time}${zone}`);
  if (Number.isNaN(at)) return fail("a time such as 2026-11-21T03:12:00Z, or how long ago, such as 2h");
  return at <= now ? ok(at) : fail("a time in the past; times without an offset such as +02:00 are UTC");
}

/** An instant for a person: to the second, in UTC. `iso`: as `toISOString` gives it. */
export const formatTime = (iso: string): string => `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
