import { describe, expect, test } from "vitest";
import type { SessionStatistics } from "../../../src/model/session.ts";
import type { Dated } from "../../../src/model/snapshot.ts";
import { renderedLines } from "../naive-renderer.ts";
import { STALE_AFTER_MS } from "../snapshot-fixtures.ts";

const HOUR_MS = 3_600_000;

describe("statistics of the service", () => {
  const stats: Dated<SessionStatistics> = {
    at: 0,
    value: {
      activeSessions: 12,
      sessionsToday: 3_400,
      bandwidthTodayGb: 0.1,
      peakConcurrentSessions: null,
      averageDurationSeconds: 61,
      topCountries: [
        ["DE", 7],
        ["FR", 2],
      ],
      topProtocols: [["socks5", 5]],
    },
  };

  test("are exported in base units, without missing fields", () => {
    expect(renderedLines("proxynet_stats", { stats })).toEqual([
      "proxynet_stats_active_sessions 12",
      "proxynet_stats_sessions_today 3400",
      "proxynet_stats_bandwidth_today_bytes 100000000",
      "proxynet_stats_session_duration_average_seconds 61",
      'proxynet_stats_country_sessions{country="DE"} 7',
      'proxynet_stats_country_sessions{country="FR"} 2',
      'proxynet_stats_protocol_sessions{protocol="socks5"} 5',
    ]);
  });

  test("disappear when they are stale", () => {
    expect(renderedLines("proxynet_stats", { stats }, { now: STALE_AFTER_MS + 1 })).toEqual([]);
  });

  test("by hour are those of the newest full hour on the service's clock, in any order of the entries", () => {
    const entry = (hour: number) => ({
      hourMs: hour * HOUR_MS,
      activeSessions: hour,
      newSessions: null,
      bandwidthGb: 2.5,
    });
    const hourly = { at: 0, value: [entry(3), entry(4), entry(2)] };
    expect(renderedLines("proxynet_hourly", { hourly }, { serviceNowMs: 4.5 * HOUR_MS })).toEqual([
      "proxynet_hourly_active_sessions 3",
      "proxynet_hourly_bandwidth_bytes 2500000000",
      "proxynet_hourly_timestamp_seconds 10800",
    ]);
    expect(renderedLines("proxynet_hourly_a", { hourly }, { serviceNowMs: 5 * HOUR_MS })).toEqual([
      "proxynet_hourly_active_sessions 4",
    ]);
    expect(renderedLines("proxynet_hourly", { hourly }, { serviceNowMs: 2 * HOUR_MS })).toEqual([]);
  });
});
