import { type DurationMs, parseDuration } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { type EpochMs, parseIsoTime } from "../../model/time.ts";
import { CommandFailure } from "../context.ts";

/** A time, or how long ago it was. */
export type PastTime = EpochMs | { readonly agoMs: DurationMs };

const EXPECTED = "it must be a time such as 2026-11-21T03:12:00Z, or how long ago, such as 2h";
const TIME_PATTERN = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)(Z|[+-]\d\d:\d\d)?)?$/;

/**
 * Parses a time in ISO 8601 or as commands print it, in UTC unless it has an offset, or how long ago it was, such as `2h`.
 * The error says what is accepted.
 */
export function parsePastTime(text: string): Result<PastTime, string> {
  const ago = parseDuration(text);
  if (ago.ok) return ok({ agoMs: ago.value });
  const [, date, time = "00:00", zone = "Z"] = TIME_PATTERN.exec(text.replace(/ UTC$/, "Z")) ?? [];
  const at = date === undefined ? Number.NaN : parseIsoTime(`${date}T${time}${zone}`);
  return Number.isNaN(at) ? fail(EXPECTED) : ok(at);
}

/** Returns the time that is meant if it is `now`. Fails if that time is in the future, or before 1970. */
function resolvePastTime(time: PastTime, now: EpochMs): Result<EpochMs, string> {
  const at = typeof time === "number" ? time : now - time.agoMs;
  if (at > now) return fail("it must be in the past; times without an offset such as +02:00 are UTC");
  return at >= 0 ? ok(at) : fail(EXPECTED);
}

/** Like {@link resolvePastTime} for the option `name`, but throws {@link CommandFailure}. */
export function timeOfOption(name: string, time: PastTime, now: EpochMs): EpochMs {
  const at = resolvePastTime(time, now);
  if (at.ok) return at.value;
  throw new CommandFailure(`${name}: ${at.error}`);
}

/** Parses a time in the past by the clock of this machine. The error says what is accepted. */
export function parseTime(text: string, now: EpochMs = Date.now()): Result<EpochMs, string> {
  const time = parsePastTime(text);
  return time.ok ? resolvePastTime(time.value, now) : time;
}
