// Formats of numbers, durations and times. The CLI formats numbers and durations in the same way, but times in UTC.

import type { LeaderView } from "../../api/status-views.ts";

const grouped = new Intl.NumberFormat("en-US");

/** Formats a whole number with thousands separators, or as a dash if it is unknown. */
export const formatCount = (value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : grouped.format(Math.round(value));

const oneDecimal = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

/** Formats an amount of gigabytes with at most one decimal, or as a dash if it is unknown. */
export const formatGigabytes = (value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : `${oneDecimal.format(value)} GB`;

/**
 * Formats a share as a percentage, rounded down to one decimal so that only all of something is 100%, or as a dash if it
 * is unknown.
 */
export function formatPercent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  return `${Math.floor(share * 1_000 + 1e-9) / 10}%`;
}

const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
] as const;

/**
 * Formats a duration in its two largest units as Prometheus does, such as `4m10s`, and below 10 s with tenths; or as a
 * dash if it is unknown.
 */
export function formatDuration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 9.95) return `${Number(Math.max(0, seconds).toFixed(1))}s`;
  const firstUnitOf = (length: number) => units.findIndex(([, unitLength]) => length >= unitLength);
  const whole = Math.round(seconds);
  const [, smallest] = units[Math.min(firstUnitOf(whole) + 1, units.length - 1)]!;
  let rest = Math.round(whole / smallest) * smallest;
  const first = firstUnitOf(rest);
  const parts = units.slice(first, first + 2).map(([unit, length]) => {
    const amount = Math.floor(rest / length);
    rest -= amount * length;
    return amount === 0 ? "" : `${amount}${unit}`;
  });
  return parts.join("");
}

/** Formats how many times slower than requested something is, such as `2.3x`. */
export const formatSlowdown = (times: number): string => `${times.toFixed(times < 10 ? 1 : 0)}x`;

/** Formats the uptime of a node, which the service reports in whole hours; a dash if it is unknown. */
export const formatUptime = (hours: number | null | undefined): string =>
  hours === 0 ? "under 1h" : formatDuration(hours == null ? null : 3_600 * hours);

/** Formats the time since an instant, such as `3m ago`. */
export const formatAge = (at: string, now: number): string =>
  `${formatDuration(Math.max(0, (now - Date.parse(at)) / 1_000))} ago`;

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

/** Formats the time of day in the local time zone, with the date if it is another day, and the year if it is another. */
export function timeOfDay(at: string, now = Date.now()): string {
  const date = new Date(at);
  if (dayOfYear.format(date) === dayOfYear.format(now)) return clock.format(date);
  const isThisYear = date.getFullYear() === new Date(now).getFullYear();
  return `${(isThisYear ? day : dayOfYear).format(date)} ${clock.format(date)}`;
}

/** Times in UTC, in ISO 8601 or as in the daemon's messages: `2026-11-21 03:12:44 UTC`. */
const UTC_TIMES = /(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?)(?:Z| UTC)/g;

/** Replaces times in UTC in a text with the time of day in the local time zone. */
export const withLocalTimes = (text: string, now = Date.now()): string =>
  text.replace(UTC_TIMES, (time, day: string, clockTime: string) => {
    const at = `${day}T${clockTime}Z`;
    return Number.isNaN(Date.parse(at)) ? time : timeOfDay(at, now);
  });

/**
 * Formats the period of a pause or hold, such as `since 03:00:00 by alice, until 05:00:00`. Null means no operator or no
 * end.
 */
export function sinceText(at: string, operator: string | null, until: string | null, now: number): string {
  const end = until === null ? "" : `, until ${timeOfDay(until, now)}`;
  return `since ${timeOfDay(at, now)}${operator === null ? "" : ` by ${operator}`}${end}`;
}

/** Formats an identifier as words: `last_seen` becomes `last seen`, `reset-breaker` becomes `reset breaker`. */
export const humanize = (identifier: string): string => identifier.replaceAll(/[_-]/g, " ");

/**
 * Formats the state of an episode. `firing` is shown as waiting, because the next step waits until nothing holds it.
 */
export const episodeState = (state: string): string => (state === "firing" ? "waiting" : humanize(state));

/** Labels of the states of actions that differ from their names in the API. */
const ACTION_STATES: Readonly<Record<string, string>> = {
  awaiting: "waiting for approval",
  intended: "recorded",
  posting: "being sent",
};

/** Formats the state or the outcome of an action. */
export const actionState = (state: string): string => ACTION_STATES[state] ?? humanize(state);

/** Formats a number of things, such as `1 node` or `3 nodes`. */
export const countNoun = (amount: number, thing: string): string =>
  `${formatCount(amount)} ${thing}${amount === 1 ? "" : "s"}`;

/** Says why a standby has no data of its own. */
export const NOT_POLLING = "this daemon does not poll";

/** Returns whether a daemon stands by, and therefore polls nothing. `leader` is that section of its status. */
export const standsBy = (leader: LeaderView | undefined): leader is NonNullable<LeaderView> =>
  leader?.is_this === false;

/** Words of a text, without punctuation at their ends. */
const WORDS = /[^\s"'(),;]*[^\s"'(),;.:]/g;

/** Replaces the id of a node in a text by its name, unless it has none or the text contains the name. */
export const withNodeName = (text: string, id: string, name: string | null): string =>
  name === null || text.includes(name) ? text : text.replaceAll(WORDS, (word) => (word === id ? name : word));

type FieldValue = string | number | boolean;

const TIME_PATTERN = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/**
 * Formats what an expression read: names and values. A time becomes its age at the time of `now`, which is left out,
 * and a number has at most three decimals. If the expression did not read `now`, `observedAt` stands for it; if that is
 * null too, times are shown as they are.
 */
export function formatFields(
  fields: Readonly<Record<string, FieldValue>>,
  observedAt: string | null,
): readonly (readonly [name: string, value: string])[] {
  const at = String(fields.now ?? observedAt);
  return Object.entries(fields)
    .filter(([name]) => name !== "now")
    .map(([name, value]) => [name, formatField(value, at)] as const);
}

function formatField(value: FieldValue, at: string): string {
  if (typeof value === "number") return String(Number(value.toFixed(3)));
  if (typeof value !== "string" || !TIME_PATTERN.test(value) || !TIME_PATTERN.test(at)) return String(value);
  const seconds = (Date.parse(at) - Date.parse(value)) / 1_000;
  return seconds < 0 ? `${formatDuration(-seconds)} ahead` : `${formatDuration(seconds)} old`;
}
