import { isDeepStrictEqual } from "node:util";
import { type ApiClient, createApiClient } from "../api-client/client.ts";
import { createServiceClock, type ServiceClock } from "../api-client/service-clock.ts";
import { type CollectedState, createCollectedState } from "../collectors/collected-state.ts";
import { type CollectorManager, startCollectorManager } from "../collectors/collector-manager.ts";
import type { Transport } from "../model/ports.ts";
import type { Lease } from "../model/shared-state.ts";
import type { ConfigResources } from "./config-resources.ts";
import type { LeadershipTerm } from "./leadership-term.ts";
import { type Runtime, userAgentOf } from "./runtime.ts";

/** What is known about a service. */
export interface KnownService {
  readonly collected: CollectedState;
  readonly serviceClock: ServiceClock;
}

/** The running collectors, and the client that they share with remediation. A reload keeps it if it can. */
export interface Collection {
  readonly resources: ConfigResources;
  readonly client: ApiClient;
  readonly knownService: KnownService;
  readonly collectorManager: CollectorManager;
}

/** Starts the collectors. `knownService` is what is known of the same service, or null. */
export function startCollection(
  resources: ConfigResources,
  knownService: KnownService | null,
  runtime: Runtime,
  { rateLimiter, remediationState }: LeadershipTerm,
): Collection {
  const { clock, cron, log, version, random, metrics, shared } = runtime;
  const { config, settings, secret } = resources;
  const transport = shared === null ? resources.transport : transportOfLeader(resources.transport, shared.lease);
  const collected =
    knownService?.collected ?? createCollectedState(settings, remediationState.facts, { clock, log, metrics });
  const serviceClock = knownService?.serviceClock ?? createServiceClock();
  const client = createApiClient({
    ...{ clock, random, rateLimiter, secret, transport, serviceClock, metrics },
    timeoutMs: config.service.timeout,
    agent: userAgentOf(version),
  });
  collected.inventory.declareScale(settings.usageScale);
  const collectorManager = startCollectorManager({
    ...{ clock, cron, log, random },
    ...{ settings, collected, client, rateLimiter, metrics },
  });
  return { resources, client, collectorManager, knownService: { collected, serviceClock } };
}

/**
 * Returns a transport that sends a request only while this daemon leads. A request may wait for its connection after
 * its caller's last check, so leadership is checked again right before it is written.
 */
const transportOfLeader = (transport: Transport, lease: Lease): Transport => ({
  ...transport,
  request: (request, signal) => transport.request({ ...request, mayBeSent: () => lease.isLeader() }, signal),
});

/** Returns whether two configurations have the same service and the same settings of the collectors. */
export const hasSameCollection = (one: ConfigResources, other: ConfigResources): boolean =>
  isDeepStrictEqual([one.config.service, one.settings], [other.config.service, other.settings]);
