import { HOUR_MS, SECOND_MS } from "../../base/duration.ts";
import type { HourlyEntry, SessionStatistics, TopList } from "../../model/session.ts";
import { type AggregateFamily, isFresh, type RenderInput, type Sample } from "./family.ts";
import { GB_BYTES } from "./node-families.ts";

const gigabytesToBytes = (gigabytes: number | null): number | null => gigabytes && Math.round(gigabytes * GB_BYTES);

const freshStatistics = (input: RenderInput): SessionStatistics | null => {
  const { stats } = input.snapshot;
  return stats !== null && isFresh(input, "stats", stats.at) ? stats.value : null;
};

/** Returns the newest entry whose hour is over by the service's clock. The current hour would look like a drop. */
function lastFullHour(input: RenderInput): HourlyEntry | null {
  const { hourly } = input.snapshot;
  if (hourly === null || !isFresh(input, "hourly", hourly.at)) return null;
  let newest: HourlyEntry | null = null;
  for (const entry of hourly.value) {
    const isOver = entry.hourMs + HOUR_MS <= input.serviceNowMs;
    if (isOver && entry.hourMs > (newest?.hourMs ?? Number.NEGATIVE_INFINITY)) newest = entry;
  }
  return newest;
}

interface SingleGaugeRow<Datum> extends Pick<AggregateFamily, "name" | "help"> {
  readonly value: (datum: Datum) => number | null;
}

/** Creates a gauge without labels, absent if the service did not report the field. */
const singleGauge =
  <Datum>(source: "stats" | "hourly", read: (input: RenderInput) => Datum | null) =>
  ({ value, ...row }: SingleGaugeRow<Datum>): AggregateFamily => ({
    ...row,
    type: "gauge",
    labels: [],
    source,
    samples(input) {
      const datum = read(input);
      return datum === null ? [] : [{ labels: {}, value: value(datum) ?? Number.NaN }];
    },
  });

const statsGauge = singleGauge("stats", freshStatistics);
const hourlyGauge = singleGauge("hourly", lastFullHour);

interface TopListRow extends Pick<AggregateFamily, "name" | "help"> {
  readonly label: string;
  readonly entries: (stats: SessionStatistics) => TopList;
}

/** Creates a gauge of a top list of the statistics. */
const topListFamily = ({ label, entries, ...row }: TopListRow): AggregateFamily => ({
  ...row,
  type: "gauge",
  labels: [label],
  source: "stats",
  *samples(input) {
    const stats = freshStatistics(input);
    if (stats === null) return;
    for (const [key, value] of entries(stats)) yield { labels: { [label]: key }, value } satisfies Sample;
  },
});

/** Families of the service's own statistics. */
export const STATISTICS_FAMILIES: readonly AggregateFamily[] = [
  statsGauge({
    name: "proxynet_stats_active_sessions",
    help: "Active sessions, as reported by the service's statistics.",
    value: (stats) => stats.activeSessions,
  }),
  statsGauge({
    name: "proxynet_stats_sessions_today",
    help: "Sessions today, by the service's definition of a day.",
    value: (stats) => stats.sessionsToday,
  }),
  statsGauge({
    name: "proxynet_stats_bandwidth_today_bytes",
    help: "Bandwidth today, reported by the service in gigabytes.",
    value: (stats) => gigabytesToBytes(stats.bandwidthTodayGb),
  }),
  statsGauge({
    name: "proxynet_stats_peak_concurrent_sessions",
    help: "Peak concurrent sessions, as reported by the service.",
    value: (stats) => stats.peakConcurrentSessions,
  }),
  statsGauge({
    name: "proxynet_stats_session_duration_average_seconds",
    help: "Mean session duration, as reported by the service.",
    value: (stats) => stats.averageDurationSeconds,
  }),
  topListFamily({
    name: "proxynet_stats_country_sessions",
    help: "Sessions by country, for the top countries reported by the service.",
    label: "country",
    entries: (stats) => stats.topCountries,
  }),
  topListFamily({
    name: "proxynet_stats_protocol_sessions",
    help: "Sessions by protocol, for the top protocols reported by the service.",
    label: "protocol",
    entries: (stats) => stats.topProtocols,
  }),
  hourlyGauge({
    name: "proxynet_hourly_active_sessions",
    help: "Active sessions in the last full hour reported by the service.",
    value: (entry) => entry.activeSessions,
  }),
  hourlyGauge({
    name: "proxynet_hourly_new_sessions",
    help: "Sessions started in the last full hour reported by the service.",
    value: (entry) => entry.newSessions,
  }),
  hourlyGauge({
    name: "proxynet_hourly_bandwidth_bytes",
    help: "Bandwidth in the last full hour reported by the service, converted from gigabytes.",
    value: (entry) => gigabytesToBytes(entry.bandwidthGb),
  }),
  hourlyGauge({
    name: "proxynet_hourly_timestamp_seconds",
    help: "Start time of the last full hour reported by the service.",
    value: (entry) => entry.hourMs / SECOND_MS,
  }),
];
