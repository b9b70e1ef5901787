import { decodeHourly, decodeStatistics } from "../api-client/decoding/statistics.ts";
import { type Call, readHourlyCall, readStatsCall } from "../api-client/endpoints.ts";
import type { ApiError } from "../api-client/errors.ts";
import { ok, type Result } from "../base/result.ts";
import type { Dated } from "../model/snapshot.ts";
import type { RunOutcome } from "./collector-health.ts";
import type { ListCollectorDeps } from "./list-collectors.ts";

/** Reads the statistics of the sessions (spec, section 4.8). */
export async function collectStats({ client, collected }: ListCollectorDeps, signal: AbortSignal): Promise<RunOutcome> {
  const { reportProblem } = collected.reporters.stats;
  const stats = await readStatistics(client, readStatsCall, (json) => decodeStatistics(json, reportProblem), signal);
  if (!stats.ok) return { complete: false, error: stats.error };
  collected.stats = { ...stats.value, value: collected.capTopLists(stats.value.value) };
  return { complete: true, error: null };
}

/** Reads the hourly statistics (spec, section 4.9). */
export async function collectHourly(
  { client, collected }: ListCollectorDeps,
  signal: AbortSignal,
): Promise<RunOutcome> {
  const { reportProblem } = collected.reporters.hourly;
  const hourly = await readStatistics(client, readHourlyCall, (json) => decodeHourly(json, reportProblem), signal);
  if (!hourly.ok) return { complete: false, error: hourly.error };
  collected.hourly = hourly.value;
  return { complete: true, error: null };
}

async function readStatistics<T>(
  client: ListCollectorDeps["client"],
  call: Call,
  decode: (json: unknown) => Result<T, ApiError>,
  signal: AbortSignal,
): Promise<Result<Dated<T>, ApiError>> {
  const response = await client.get(call, "stats", signal);
  if (!response.ok) return response;
  const statistics = decode(response.value.json);
  return statistics.ok ? ok({ value: statistics.value, at: response.value.at }) : statistics;
}
