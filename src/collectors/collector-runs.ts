import type { ApiClient } from "../api-client/client.ts";
import { decodeHourly, decodeStatistics } from "../api-client/decoding/statistics.ts";
import { readHourlyCall, readStatsCall } from "../api-client/endpoints.ts";
import type { Share } from "../base/percent.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, FactStore, Log } from "../model/ports.ts";
import type { Collector } from "../model/snapshot.ts";
import { callsInFlightMax } from "../rate-limit/concurrency.ts";
import type { Limits } from "../rate-limit/limits.ts";
import { pollingCallsPerWindow } from "../rate-limit/limits.ts";
import { CATEGORY_OF_COLLECTOR } from "../scheduling/polling-capacity.ts";
import { type CollectedState, storeFailedListed } from "./collected-state.ts";
import type { RunOutcome } from "./collector-health.ts";
import { collectNodes, collectSessions, type ListCollectorDeps } from "./list-collectors.ts";
import type { PollingPlan } from "./polling-plan.ts";
import { collectStatistics } from "./statistics-collector.ts";

/** Dependencies of the collectors that run on a schedule. */
export interface CollectorRunnerDeps {
  readonly settings: { readonly limits: Limits; readonly maxMissing: Share };
  readonly collected: CollectedState;
  readonly facts: FactStore;
  readonly clock: Clock;
  readonly metrics: DaemonMetrics;
  readonly log: Log;
}

/** Runs a collector once. */
type CollectorRunner = (client: ApiClient, signal: AbortSignal) => Promise<RunOutcome>;

/** Creates the function that runs each collector once. Details have none, since they are read continuously. */
export function createCollectorRunners(
  deps: CollectorRunnerDeps,
  pollingPlan: PollingPlan,
): Readonly<Record<Exclude<Collector, "details">, CollectorRunner>> {
  const { settings, collected } = deps;
  const { reporters } = collected;

  function listDeps(list: "nodes" | "sessions", client: ApiClient): ListCollectorDeps {
    const category = CATEGORY_OF_COLLECTOR[list];
    return {
      ...deps,
      client,
      reporter: reporters[list],
      listBehavior: collected.listBehavior[list],
      inFlightMax: callsInFlightMax(settings.limits),
      spacingMs: settings.limits.categories[category].windowMs / pollingCallsPerWindow(settings.limits, category),
    };
  }

  return {
    async nodes(client, signal) {
      const outcome = await collectNodes(listDeps("nodes", client), collected.inventory, settings.maxMissing, signal);
      if (outcome.complete) pollingPlan.recordCompleteList("nodes");
      return outcome;
    },
    async sessions(client, signal) {
      const outcome = await collectSessions(listDeps("sessions", client), collected.sessions, signal);
      if (outcome.complete) pollingPlan.recordCompleteList("sessions");
      storeFailedListed(collected.sessions, deps.facts, deps.log);
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
