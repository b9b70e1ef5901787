import type { ApiClient } from "../api-client/client.ts";
import type { Call } from "../api-client/endpoints.ts";
import type { ApiError } from "../api-client/errors.ts";
import type { Result } from "../base/result.ts";
import { createLabelCounts } from "../inventory/label-counts.ts";
import type { OnLabelsFolded } from "../model/label-values.ts";
import type { SessionStatistics } from "../model/session.ts";
import type { Dated } from "../model/snapshot.ts";
import type { RunOutcome } from "./collector-health.ts";

/** Reads statistics with one call, and passes them to `onRead`. */
export async function collectStatistics<T>(
  client: ApiClient,
  call: Call,
  decode: (json: unknown) => Result<T, ApiError>,
  onRead: (statistics: Dated<T>) => void,
  signal: AbortSignal,
): Promise<RunOutcome> {
  const response = await client.get(call, "stats", signal);
  if (!response.ok) return { complete: false, error: response.error };
  const statistics = decode(response.value.json);
  if (!statistics.ok) return { complete: false, error: statistics.error };
  onRead({ value: statistics.value, at: response.value.at });
  return { complete: true, error: null };
}

/** Creates a function that caps the label values of the top lists. A value keeps its series while it is listed. */
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
