import { DAY_MS, type DurationMs, formatDuration, MINUTE_MS } from "../../base/duration.ts";
import { type IntervalSpec, LOCAL_ZONE, matchesDay, type TimeInterval } from "../../model/policy/time-interval.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import type { EpochMs } from "../../model/time.ts";

/** A week and a day: whatever opens every week opens within it, also where the clocks change on that day. */
const OPENING_HORIZON_MS: DurationMs = 8 * DAY_MS;
/** Zones come from the configuration, some few; reloads may bring new ones. */
const CACHED_ZONES_MAX = 64;
const UTC = "UTC";

/** Milliseconds since 1970 as a zone's clocks and calendars show them: as if the zone were UTC. */
type LocalTimeMs = number;

/**
 * Whether an instant is within a time interval, which is within any of its specs, by Alertmanager's rules: every list
 * that is given must fit the instant as the spec's location shows it, each list by any of its ranges; an empty list fits
 * nothing. A day of the month that the month doesn't have fits none of its days. Where the clocks change, an hour that
 * is skipped has no window, and one that is repeated is within both times.
 *
 * Weekday, day of month, month and year are those of the instant itself. So the morning of a night that begins on Friday
 * belongs to Saturday.
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
export interface Opening {
  readonly at: EpochMs;
  /** The time zone of the spec that opens it. */
  readonly zone: string;
}

/**
 * The first instant, at `at` or after it, that is within any of the intervals; null: none within the horizon, which is
 * 8 days at most. Cheap: it goes from one time at which a spec may begin to the next.
 */
export function nextOpening(
  intervals: readonly TimeInterval[],
  at: EpochMs,
  horizonMs: DurationMs = OPENING_HORIZON_MS,
): Opening | null {
  let first: Opening | null = null;
  let until = at + Math.min(horizonMs, OPENING_HORIZON_MS);
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

/** The next time of the day at which the spec may begin, or the next change of the clocks if that is earlier. */
function nextPossibleOpening(spec: IntervalSpec, at: EpochMs): EpochMs {
  const wall = localTimeOf(spec, at);
  const day = Math.floor(wall / DAY_MS) * DAY_MS;
  const candidates = (spec.times ?? [])
    .map(({ startMinute }) => day + startMinute * MINUTE_MS)
    .filter((candidate) => candidate > wall);
  const next = at + Math.min(...candidates, day + DAY_MS) - wall;
  const offset = wall - at;
  return localTimeOf(spec, next) - next === offset ? next : offsetChangeAt(spec, at, next);
}

/** The first instant after `before` at which the zone's clocks differ from UTC by as much as they do at `after`. */
function offsetChangeAt(spec: IntervalSpec, before: EpochMs, after: EpochMs): EpochMs {
  const offset = localTimeOf(spec, before) - before;
  let [low, high] = [before, after];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (localTimeOf(spec, middle) - middle === offset) low = middle;
    else high = middle;
  }
  return high;
}

/**
 * Why a policy's windows hold it; nothing: it may act. It may where every given instant (our clock's, the service's)
 * is within any of the named intervals, or where no interval is named. A name that no interval has blocks, and so does
 * not knowing what time it is.
 */
export function windowBlockers(
  names: readonly string[],
  intervals: ReadonlyMap<string, TimeInterval>,
  at: readonly EpochMs[],
): readonly Blocker[] {
  const blockers = names
    .filter((name) => !intervals.has(name))
    .map((name): Blocker => ({ reason: "window", detail: `unknown time interval ${name}` }));
  const known = names.flatMap((name) => intervals.get(name) ?? []);
  // No window is asked for, or none that there is.
  if (known.length === 0) return blockers;
  if (at.length === 0 || !at.every(Number.isFinite)) {
    return [...blockers, { reason: "window", detail: "the current time is unknown" }];
  }
  const outside = at.filter((instant) => !known.some((interval) => isWithin(interval, instant)));
  if (outside.length === 0) return blockers;
  const where = `outside of ${known.map(({ name }) => name).join(", ")}`;
  const whose = outside.length < at.length ? " by one clock" : "";
  // The slowest clock is the last to reach the opening.
  const when = openingText(nextOpening(known, Math.min(...outside)));
  return [...blockers, { reason: "window", detail: `${where}${whose}; ${when}` }];
}

function openingText(opening: Opening | null): string {
  if (opening === null) return `does not open within ${formatDuration(OPENING_HORIZON_MS)}`;
  const wall = new Date(localTimeIn(opening.zone, opening.at)).toISOString();
  return `opens at ${wall.slice(0, 10)} ${wall.slice(11, 16)} ${opening.zone}`;
}

const localTimeOf = (spec: IntervalSpec, at: EpochMs): LocalTimeMs => localTimeIn(spec.location ?? UTC, at);

/** Throws on a zone that the platform doesn't know: the configuration has been asked about it. */
function localTimeIn(zone: string, at: EpochMs): LocalTimeMs {
  if (zone === UTC) return at;
  const [month, day, year, hour, minute, second] = formatterOf(zone).format(at).match(/\d+/g)!.map(Number);
  const wall = Date.UTC(year!, month! - 1, day!, hour!, minute!, second!);
  return wall + (at - Math.floor(at / 1_000) * 1_000);
}

// Creating a formatter is expensive, so each zone's formatter is cached.
const formatters = new Map<string, Intl.DateTimeFormat>();

function formatterOf(zone: string): Intl.DateTimeFormat {
  const known = formatters.get(zone);
  if (known !== undefined) return known;
  if (formatters.size >= CACHED_ZONES_MAX) formatters.clear();
  const formatter = new Intl.DateTimeFormat("en-US-u-ca-gregory-nu-latn", {
    ...(zone === LOCAL_ZONE ? {} : { timeZone: zone }),
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  formatters.set(zone, formatter);
  return formatter;
}
