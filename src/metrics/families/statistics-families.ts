import { HOUR_MS, SECOND_MS } from "../../base/duration.ts";
import type { HourlyEntry, TopList } from "../../model/session.ts";
import { type AggregateFamily, gaugesOf, isFresh, type RenderInput, type Sample } from "./family.ts";
import { GB_BYTES } from "./node-families.ts";

const gigabytesToBytes = (gigabytes: number | null): number | null => gigabytes && Math.round(gigabytes * GB_BYTES);

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

const statsGauge = gaugesOf("stats", (input) => {
  const { stats } = input.snapshot;
  return stats !== null && isFresh(input, "stats", stats.at) ? stats.value : null;
});
const hourlyGauge = gaugesOf("hourly", lastFullHour);

/** Returns the only sample of a gauge without labels, which is left out if the service did not report the field. */
const single = (value: number | null): readonly Sample[] => [{ labels: {}, value: value ?? Number.NaN }];

const topSamples = (label: string, entries: TopList): readonly Sample[] =>
  entries.map(([key, value]) => ({ labels: { [label]: key }, value }));

/** Families of the service's own statistics. */
export const STATISTICS_FAMILIES: readonly AggregateFamily[] = [
  statsGauge({
    name: "proxynet_stats_active_sessions",
    help: "Active sessions, as reported by the service's statistics.",
    samples: (stats) => single(stats.activeSessions),
  }),
  statsGauge({
    name: "proxynet_stats_sessions_today",
    help: "Sessions today, by the service's definition of a day.",
    samples: (stats) => single(stats.sessionsToday),
  }),
  statsGauge({
    name: "proxynet_stats_bandwidth_today_bytes",
    help: "Bandwidth today, reported by the service in gigabytes.",
    samples: (stats) => single(gigabytesToBytes(stats.bandwidthTodayGb)),
  }),
  statsGauge({
    name: "proxynet_stats_peak_concurrent_sessions",
    help: "Peak concurrent sessions, as reported by the service.",
    samples: (stats) => single(stats.peakConcurrentSessions),
  }),
  statsGauge({
    name: "proxynet_stats_session_duration_average_seconds",
    help: "Mean session duration, as reported by the service.",
    samples: (stats) => single(stats.averageDurationSeconds),
  }),
  statsGauge({
    name: "proxynet_stats_country_sessions",
    help: "Sessions by country, for the top countries reported by the service.",
    labels: ["country"],
    samples: (stats) => topSamples("country", stats.topCountries),
  }),
  statsGauge({
    name: "proxynet_stats_protocol_sessions",
    help: "Sessions by protocol, for the top protocols reported by the service.",
    labels: ["protocol"],
    samples: (stats) => topSamples("protocol", stats.topProtocols),
  }),
  hourlyGauge({
    name: "proxynet_hourly_active_sessions",
    help: "Active sessions in the last full hour reported by the service.",
    samples: (entry) => single(entry.activeSessions),
  }),
  hourlyGauge({
    name: "proxynet_hourly_new_sessions",
    help: "Sessions started in the last full hour reported by the service.",
    samples: (entry) => single(entry.newSessions),
  }),
  hourlyGauge({
    name: "proxynet_hourly_bandwidth_bytes",
    help: "Bandwidth in the last full hour reported by the service, converted from gigabytes.",
    samples: (entry) => single(gigabytesToBytes(entry.bandwidthGb)),
  }),
  hourlyGauge({
    name: "proxynet_hourly_timestamp_seconds",
    help: "Start time of the last full hour reported by the service.",
    samples: (entry) => single(entry.hourMs / SECOND_MS),
  }),
];
