import type { ApiClient } from "../api-client/client.ts";
import { decodeHourly, decodeStatistics } from "../api-client/decoding/statistics.ts";
import { type Call, readHourlyCall, readStatsCall } from "../api-client/endpoints.ts";
import type { ApiError } from "../api-client/errors.ts";
import type { Result } from "../base/result.ts";
import type { Collector, Dated } from "../model/snapshot.ts";
import { storeFailedListed } from "./collected-state.ts";
import type { RunOutcome } from "./collector-health.ts";
import { collectNodes, collectSessions, type ListCollectorDeps } from "./list-collectors.ts";
import type { PollingPlan } from "./polling-plan.ts";

/** Dependencies of the collectors that run on a schedule. */
export type CollectorRunnerDeps = Omit<ListCollectorDeps, "client">;

/** Runs a collector once. */
type CollectorRunner = (client: ApiClient, signal: AbortSignal) => Promise<RunOutcome>;

/** Creates the function that runs each collector once. Details have none, since they are read continuously. */
export function createCollectorRunners(
  deps: CollectorRunnerDeps,
  pollingPlan: PollingPlan,
): Readonly<Record<Exclude<Collector, "details">, CollectorRunner>> {
  const { collected } = deps;
  const { reporters } = collected;
  return {
    async nodes(client, signal) {
      const outcome = await collectNodes({ ...deps, client }, signal);
      if (outcome.complete) pollingPlan.recordCompleteList("nodes");
      return outcome;
    },
    async sessions(client, signal) {
      const outcome = await collectSessions({ ...deps, client }, signal);
      if (outcome.complete) pollingPlan.recordCompleteList("sessions");
      storeFailedListed(collected);
      return outcome;
    },
    stats: (client, signal) =>
      collectStatistics(
        client,
        readStatsCall,
        (json) => decodeStatistics(json, reporters.stats.reportRemark),
        ({ value, at }) => {
          collected.stats = { value: collected.capTopLists(value), at };
        },
        signal,
      ),
    hourly: (client, signal) =>
      collectStatistics(
        client,
        readHourlyCall,
        (json) => decodeHourly(json, reporters.hourly.reportRemark),
        (hourly) => {
          collected.hourly = hourly;
        },
        signal,
      ),
  };
}

/** Reads statistics with one call, and passes them to `onRead`. */
async function collectStatistics<T>(
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
