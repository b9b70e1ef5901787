import type { ApiClient } from "../api-client/client.ts";
import type { RateLimiter } from "../api-client/rate-limiter.ts";
import type { CollectorReporter } from "../collectors/collector-health.ts";
import type { Config } from "../config/schema/config.ts";
import type { PolicySpec } from "../config/schema/policy.ts";
import type { Inventory } from "../inventory/inventory.ts";
import type { SessionWalkHistory } from "../inventory/sessions/session-walks.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, ExternalBlockers, Log } from "../model/ports.ts";
import type { Journal } from "../model/remediation/journal.ts";
import type { Notifier } from "../notify/notifier.ts";
import { createExternalBlockerCache, type ExternalBlockerCache } from "./evaluation/external-blockers.ts";
import { ApiKeyStatus } from "./execution/api-key-status.ts";
import { ObservedFleet } from "./observed-fleet.ts";
import { PolicySet } from "./policy-set.ts";
import type { RemediationState } from "./state/journaled-state.ts";

/** The policies of a configuration, and the limits over them. */
export interface RemediationConfig extends Pick<Config, "safety" | "time_intervals"> {
  readonly policies: readonly PolicySpec[];
}

/** Dependencies of the remediation controller. */
export interface RemediationControllerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DaemonMetrics;
  readonly notifier: Notifier;
  readonly config: RemediationConfig;
  /** `service.base_url`, which identifies the service that the nodes belong to. */
  readonly serviceUrl: string;
  readonly client: ApiClient;
  readonly rateLimiter: Pick<RateLimiter, "heldForMs" | "monthLeftMs">;
  readonly inventory: Inventory;
  /** Counts and logs what is wrong with the details that are read before an action and to verify one. */
  readonly detailReporter: CollectorReporter;
  readonly sessionWalks: Pick<SessionWalkHistory, "acceptable" | "acceptMissing" | "acceptsMissing">;
  readonly externalBlockers: ExternalBlockers;
  readonly journal: Journal;
  readonly remediationState: RemediationState;
  /** Called after a node was read to verify an action, so that a new snapshot is published soon. */
  readonly onRead: () => void;
}

/** Everything that the parts of one controller depend on. Only the controller and the round have all of it. */
export interface RemediationContext extends RemediationControllerDeps {
  readonly policies: PolicySet;
  readonly observed: ObservedFleet;
  readonly apiKey: ApiKeyStatus;
  readonly externalBlockerCache: ExternalBlockerCache;
}

/** Creates the parts of a controller that has not seen a snapshot. */
export const createRemediationContext = (deps: RemediationControllerDeps): RemediationContext => ({
  ...deps,
  policies: new PolicySet(deps.config, deps.remediationState.records),
  observed: new ObservedFleet(deps.client, () => deps.remediationState.clock.suspendedAt()),
  apiKey: new ApiKeyStatus(deps.remediationState, deps.clock),
  externalBlockerCache: createExternalBlockerCache(deps.externalBlockers, deps.clock),
});

/** What decisions depend on: what is observed, configured and recorded. */
export type DecisionContext = Pick<
  RemediationContext,
  "clock" | "observed" | "policies" | "remediationState" | "config"
>;

/** What decisions and changes to episodes depend on, and where they are reported. */
export type EpisodeContext = DecisionContext & Pick<RemediationContext, "notifier" | "metrics" | "log">;

/** Access to the service, and what is known of it. */
export type ServiceContext = Pick<
  RemediationContext,
  "clock" | "observed" | "client" | "inventory" | "detailReporter" | "apiKey" | "externalBlockerCache"
>;
