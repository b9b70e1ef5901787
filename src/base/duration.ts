import { fail, ok, type Result } from "./result.ts";

/** A length of time in milliseconds, never negative. */
export type DurationMs = number;

const unitMs = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
  y: 365 * 86_400_000,
} as const;

/** Common lengths of time. */
export const SECOND_MS: DurationMs = unitMs.s;
export const MINUTE_MS: DurationMs = unitMs.m;
export const HOUR_MS: DurationMs = unitMs.h;
export const DAY_MS: DurationMs = unitMs.d;

// As in Prometheus, each unit occurs at most once, from the largest to the smallest.
const grammar = /^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/;
const units = ["y", "w", "d", "h", "m", "s", "ms"] as const;

/** Parses a Prometheus duration (`30s`, `1h30m`, `7d`, `0`). The error describes the format. */
export function parseDuration(text: string): Result<DurationMs, string> {
  if (text === "0") return ok(0);
  const match = grammar.exec(text);
  if (text === "" || match === null) {
    return fail("a duration is a number with a unit, largest unit first, such as 30s, 5m, 1h30m or 7d");
  }
  const total = units.reduce((sum, unit, index) => sum + Number(match[index + 1] ?? 0) * unitMs[unit], 0);
  return Number.isSafeInteger(total) ? ok(total) : fail("a duration is at most about 285,000 years");
}

/** Formats a duration as Prometheus does; the inverse of {@link parseDuration} for whole milliseconds. */
export function formatDuration(duration: DurationMs): string {
  let rest = Math.round(duration);
  if (rest === 0) return "0s";
  let text = "";
  for (const unit of units) {
    // As in Prometheus: years and weeks only without a remainder, so 30d stays 30d.
    if ((unit === "y" || unit === "w") && rest % unitMs[unit] !== 0) continue;
    const count = Math.floor(rest / unitMs[unit]);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * unitMs[unit];
  }
  return text;
}

/** Formats a remaining time in whole seconds, rounded up; 0s if it is negative. */
export const formatSecondsLeft = (duration: DurationMs): string =>
  formatDuration(Math.max(0, Math.ceil(duration / SECOND_MS)) * SECOND_MS);
