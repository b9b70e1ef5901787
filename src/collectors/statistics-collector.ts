import type { ApiClient } from "../api-client/client.ts";
import { decodeHourly, decodeStatistics } from "../api-client/decoding/statistics.ts";
import { type Call, readHourlyCall, readStatsCall } from "../api-client/endpoints.ts";
import type { ApiError } from "../api-client/errors.ts";
import type { Result } from "../base/result.ts";
import { createLabelCounts } from "../inventory/label-counts.ts";
import type { OnLabelsFolded } from "../model/label-values.ts";
import type { HourlyEntry, SessionStatistics } from "../model/session.ts";
import type { Dated } from "../model/snapshot.ts";
import type { CollectorReporter, RunOutcome } from "./collector-health.ts";

/** Reads the aggregate statistics and passes them to `take`. */
export const collectStats = (
  client: ApiClient,
  reporter: CollectorReporter,
  take: (stats: Dated<SessionStatistics>) => void,
  signal: AbortSignal,
): Promise<RunOutcome> =>
  collectStatistics(client, readStatsCall, (json) => decodeStatistics(json, reporter.reportRemark), take, signal);

/** Reads the hourly statistics and passes them to `take`. */
export const collectHourly = (
  client: ApiClient,
  reporter: CollectorReporter,
  take: (hours: Dated<readonly HourlyEntry[]>) => void,
  signal: AbortSignal,
): Promise<RunOutcome> =>
  collectStatistics(client, readHourlyCall, (json) => decodeHourly(json, reporter.reportRemark), take, signal);

async function collectStatistics<T>(
  client: ApiClient,
  call: Call,
  read: (json: unknown) => Result<T, ApiError>,
  take: (value: Dated<T>) => void,
  signal: AbortSignal,
): Promise<RunOutcome> {
  const answer = await client.get(call, "stats", signal);
  if (!answer.ok) return { complete: false, error: answer.error };
  const value = read(answer.value.json);
  if (!value.ok) return { complete: false, error: value.error };
  take({ value: value.value, at: answer.value.at });
  return { complete: true, error: null };
}

/** Creates a function that caps the label values of the top lists; values keep their place between readings. */
export function createTopListCaps(onFolded: OnLabelsFolded): (stats: SessionStatistics) => SessionStatistics {
  const countries = createLabelCounts("proxynet_stats_country_sessions", onFolded);
  const protocols = createLabelCounts("proxynet_stats_protocol_sessions", onFolded);
  return (stats) => {
    for (const { country, sessions } of stats.topCountries) countries.add(country, sessions);
    for (const { protocol, sessions } of stats.topProtocols) protocols.add(protocol, sessions);
    return {
      ...stats,
      topCountries: Array.from(countries.finish(), ([country, sessions]) => ({ country, sessions })),
      topProtocols: Array.from(protocols.finish(), ([protocol, sessions]) => ({ protocol, sessions })),
    };
  };
}
