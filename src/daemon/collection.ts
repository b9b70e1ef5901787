import { isDeepStrictEqual } from "node:util";
import type { Access } from "./active-config.ts";
import { SECOND_MS } from "../base/duration.ts";
import type { Plan } from "../scheduling/planner.ts";
import { createSight, type Sight, startWatch, type Watch } from "../collectors/collector-manager.ts";
import type { AppParts, Foundation } from "./runtime.ts";
import type { WardenMetrics } from "../metrics/daemon-metrics.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type CallObserver, createClient, type ServiceClient } from "../api-client/client.ts";
import { createServiceClock, type ServiceClock } from "../api-client/service-clock.ts";

/** What is known of a service. */
export interface Known {
  readonly sight: Sight;
  readonly serviceClock: ServiceClock;
}

/** Told of every snapshot, and of the plan in force. */
export type OnSnapshot = (snapshot: Snapshot, plan: Plan) => void;

/** The collectors at work, and the client that they share with remediation. A reload keeps it where it can. */
export interface Observation {
  readonly access: Access;
  readonly client: ServiceClient;
  readonly known: Known;
  readonly watch: Watch;
  /** The last snapshot; null before the first. */
  snapshot(): Snapshot | null;
  /** From now on `listener` is told, in place of the one before; of the last snapshot at once. */
  attend(listener: OnSnapshot): void;
  /** Stops the collectors. */
  stop(): Promise<void>;
  /** Closes the connections to the service: once nothing of remediation is under way either. */
  close(): Promise<void>;
}

/** Starts the collectors. `known`: what was seen of the same service before; null: nothing. */
export function observe(access: Access, known: Known | null, parts: AppParts, foundation: Foundation): Observation {
  const { clock, log, version, random } = parts;
  const { office, metrics, store } = foundation;
  const { config, settings, secret, transport } = access;
  const sight = known?.sight ?? createSight(settings, store.facts, { clock, log, metrics });
  const serviceClock = known?.serviceClock ?? createServiceClock();
  const client = createClient({
    ...{ clock, random, office, secret, transport, serviceClock },
    timeoutMs: config.service.timeout,
    observer: observerOf(metrics),
    agent: agentOf(version),
  });
  sight.inventory.declareScale(settings.usageScale);
  let latest: Snapshot | null = null;
  let listener: OnSnapshot = () => {};
  const watch = startWatch({
    ...parts,
    ...{ settings, sight, client, office, metrics, facts: store.facts },
    onSnapshot(snapshot, plan) {
      latest = snapshot;
      listener(snapshot, plan);
    },
  });
  return {
    ...{ access, client, watch },
    known: { sight, serviceClock },
    snapshot: () => latest,
    attend(next) {
      listener = next;
      if (latest !== null) watch.publish();
    },
    stop: watch.stop,
    close: transport.close,
  };
}

/** Whether two configurations ask the same of the collectors, by the same way to the same service. */
export const observeTheSame = (one: Access, other: Access): boolean =>
  isDeepStrictEqual(observed(one), observed(other));

const observed = ({ config, settings }: Access) => ({ service: config.service, settings });

/** How this program names itself to servers. */
export const agentOf = (version: string): string => `proxywarden/${version}`;

function observerOf(metrics: WardenMetrics): CallObserver {
  return {
    called(endpoint, code, tookMs) {
      metrics.inc("proxywarden_api_requests_total", { endpoint, code });
      metrics.observe("proxywarden_api_request_duration_seconds", { endpoint }, tookMs / SECOND_MS);
    },
    stated(category, limit, remaining, resetEpochSeconds) {
      metrics.set("proxywarden_ratelimit_limit", { category }, limit);
      metrics.set("proxywarden_ratelimit_remaining", { category }, remaining);
      metrics.set("proxywarden_ratelimit_reset_timestamp_seconds", { category }, resetEpochSeconds ?? Number.NaN);
    },
    refused: (category) => metrics.inc("proxywarden_ratelimit_exceeded_total", { category }),
  };
}
