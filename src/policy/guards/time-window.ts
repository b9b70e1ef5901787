import { DAY_MS, type DurationMs, formatDuration, MINUTE_MS } from "../../base/duration.ts";
import { oncePerKey } from "../../base/once-per-key.ts";
import { type IntervalSpec, LOCAL_ZONE, matchesDay, type TimeInterval } from "../../model/policy/time-interval.ts";
import type { Blocker } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";

/** A week and a day. A weekly window opens within this time, even if the clocks change on that day. */
const OPENING_HORIZON_MS: DurationMs = 8 * DAY_MS;
/** Clocks change at a whole multiple of this, in UTC. */
const CLOCK_CHANGE_STEP_MS: DurationMs = 15 * MINUTE_MS;
const UTC = "UTC";

/** Local time of a zone, in milliseconds since 1970 as if the zone were UTC. */
type LocalTimeMs = number;

/**
 * Returns whether a time is within any spec of a time interval, by Alertmanager's rules. Every list of a spec must
 * match the local time with any of its ranges; an empty list matches nothing. A day that a month doesn't have matches
 * no day. When the clocks change, a skipped hour is in no window, and a repeated hour is in its window both times.
 *
 * Weekday, day of month, month and year are those of the time itself, so the morning after Friday night is a Saturday.
 */
export const isWithin = (interval: TimeInterval, at: EpochMs): boolean =>
  interval.intervals.some((spec) => matchesSpec(spec, localTimeOf(spec, at)));

function matchesSpec(spec: IntervalSpec, wall: LocalTimeMs): boolean {
  const day = Math.floor(wall / DAY_MS);
  if (!matchesDay(spec, day)) return false;
  const minute = Math.floor((wall - day * DAY_MS) / MINUTE_MS);
  const { times } = spec;
  return times === undefined || times.some(({ startMinute, endMinute }) => minute >= startMinute && minute < endMinute);
}

/** When a window opens. */
interface Opening {
  readonly at: EpochMs;
  /** The time zone of the spec that opens it. */
  readonly zone: string;
}

/**
 * Returns the first time from `at` on that is within any of the intervals, or null if there is none within
 * {@link OPENING_HORIZON_MS}. Only times at which a spec can begin are checked.
 */
export function nextOpening(intervals: readonly TimeInterval[], at: EpochMs): Opening | null {
  let first: Opening | null = null;
  let until = at + OPENING_HORIZON_MS;
  for (const spec of intervals.flatMap(({ intervals: specs }) => specs)) {
    const opening = nextSpecOpening(spec, at, until);
    if (opening === null) continue;
    first = { at: opening, zone: spec.location ?? UTC };
    until = opening - 1;
  }
  return first;
}

function nextSpecOpening(spec: IntervalSpec, from: EpochMs, until: EpochMs): EpochMs | null {
  for (let at = from; at <= until; at = nextPossibleOpening(spec, at)) {
    if (matchesSpec(spec, localTimeOf(spec, at))) return at;
  }
  return null;
}

/** Returns the next time at which a spec can begin, or the next quarter of an hour if the clocks change before that. */
function nextPossibleOpening(spec: IntervalSpec, at: EpochMs): EpochMs {
  const wall = localTimeOf(spec, at);
  const day = Math.floor(wall / DAY_MS) * DAY_MS;
  const candidates = (spec.times ?? [])
    .map(({ startMinute }) => day + startMinute * MINUTE_MS)
    .filter((candidate) => candidate > wall);
  const next = at + Math.min(...candidates, day + DAY_MS) - wall;
  // Clocks change only at such a time.
  const quarter = (Math.floor(at / CLOCK_CHANGE_STEP_MS) + 1) * CLOCK_CHANGE_STEP_MS;
  return localTimeOf(spec, next) - next === wall - at ? next : quarter;
}

/**
 * Returns why a policy's windows hold it. It may act if no interval is named, or if each time in `at` (on our clock and
 * on the service's) is within any of the named intervals. An unknown name and an unknown time block.
 */
export function windowBlockers(
  names: readonly string[],
  intervals: ReadonlyMap<string, TimeInterval>,
  at: readonly EpochMs[],
): readonly Blocker<"window">[] {
  const blockers = names
    .filter((name) => !intervals.has(name))
    .map((name): Blocker<"window"> => ({ reason: "window", detail: `unknown time interval ${name}` }));
  const known = names.flatMap((name) => intervals.get(name) ?? []);
  if (known.length === 0) return blockers;
  if (at.length === 0 || !at.every(Number.isFinite)) {
    return [...blockers, { reason: "window", detail: "the current time is unknown" }];
  }
  const outside = at.filter((time) => !known.some((interval) => isWithin(interval, time)));
  if (outside.length === 0) return blockers;
  const where = `outside ${known.map(({ name }) => name).join(", ")}`;
  const clock = outside.length < at.length ? " by one of the two clocks" : "";
  // The slowest clock reaches the opening last.
  const when = openingText(nextOpening(known, Math.min(...outside)));
  return [...blockers, { reason: "window", detail: `${where}${clock}; ${when}` }];
}

function openingText(opening: Opening | null): string {
  if (opening === null) return `does not open within ${formatDuration(OPENING_HORIZON_MS)}`;
  const wall = new Date(localTimeIn(opening.zone, opening.at)).toISOString();
  return `opens at ${wall.slice(0, 10)} ${wall.slice(11, 16)} ${opening.zone}`;
}

const localTimeOf = (spec: IntervalSpec, at: EpochMs): LocalTimeMs => localTimeIn(spec.location ?? UTC, at);

/**
 * Returns the local time in a zone. Throws if the platform doesn't know the zone, which the configuration has checked.
 */
function localTimeIn(zone: string, at: EpochMs): LocalTimeMs {
  if (zone === UTC) return at;
  const [month, day, year, hour, minute, second] = formatterOf(zone).format(at).match(/\d+/g)!.map(Number);
  const wall = Date.UTC(year!, month! - 1, day, hour, minute, second);
  return wall + (at - Math.floor(at / 1_000) * 1_000);
}

/** Creating a formatter is expensive, so each zone's formatter is cached. There are a few hundred zones. */
const formatterOf = oncePerKey(
  (zone: string) =>
    new Intl.DateTimeFormat("en-US-u-ca-gregory-nu-latn", {
      ...(zone === LOCAL_ZONE ? {} : { timeZone: zone }),
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    }),
);
