import type { Result } from "../base/result.ts";
import type { OnFolded } from "../model/label-caps.ts";
import type { HourlyEntry, SessionStatistics } from "../model/session.ts";
import type { Dated } from "../model/snapshot.ts";
import type { ServiceClient } from "../api-client/client.ts";
import { type Call, readHourly, readStats } from "../api-client/endpoints.ts";
import type { ServiceError } from "../api-client/errors.ts";
import { readHours, readStatistics } from "../api-client/decoding/records.ts";
import type { Account, Outcome } from "./collector-health.ts";
import { createLabelCounts } from "../inventory/label-counts.ts";

/** Reads the aggregate statistics and hands them on. */
export const collectStats = (
  client: ServiceClient,
  account: Account,
  take: (stats: Dated<SessionStatistics>) => void,
  signal: AbortSignal,
): Promise<Outcome> => collectOne(client, readStats, (json) => readStatistics(json, account.remark), take, signal);

/** Reads the last 24 hours and hands them on. */
export const collectHourly = (
  client: ServiceClient,
  account: Account,
  take: (hours: Dated<readonly HourlyEntry[]>) => void,
  signal: AbortSignal,
): Promise<Outcome> => collectOne(client, readHourly, (json) => readHours(json, account.remark), take, signal);

async function collectOne<T>(
  client: ServiceClient,
  call: Call,
  read: (json: unknown) => Result<T, ServiceError>,
  take: (value: Dated<T>) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  const answer = await client.get(call, "stats", signal);
  if (!answer.ok) return { complete: false, error: answer.error };
  const value = read(answer.value.json);
  if (!value.ok) return { complete: false, error: value.error };
  take({ value: value.value, at: answer.value.at });
  return { complete: true, error: null };
}

/** Keeps the top lists of the statistics within the caps of their labels, the same values from reading to reading. */
export function createTopLists(onFolded: OnFolded): (stats: SessionStatistics) => SessionStatistics {
  const countries = createLabelCounts("proxynet_stats_country_sessions", onFolded);
  const protocols = createLabelCounts("proxynet_stats_protocol_sessions", onFolded);
  return (stats) => {
    for (const { country, sessions } of stats.topCountries) countries.add(country, sessions);
    for (const { protocol, sessions } of stats.topProtocols) protocols.add(protocol, sessions);
    return {
      ...stats,
      topCountries: Array.from(countries.settle(), ([country, sessions]) => ({ country, sessions })),
      topProtocols: Array.from(protocols.settle(), ([protocol, sessions]) => ({ protocol, sessions })),
    };
  };
}
