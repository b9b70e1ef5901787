import type { ApiClient } from "../api-client/client.ts";
import type { CollectorReporter } from "../collectors/collector-health.ts";
import type { Safety } from "../config/schema/safety.ts";
import type { Inventory } from "../inventory/inventory.ts";
import type { SessionWalkHistory } from "../inventory/sessions/session-walks.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { PolicyRule } from "../model/policy/policy.ts";
import type { TimeInterval } from "../model/policy/time-interval.ts";
import type { Clock, ExternalBlockers, Log } from "../model/ports.ts";
import type { Journal } from "../model/remediation/journal.ts";
import type { Notifier } from "../notify/notifier.ts";
import type { ExternalBlockerCache } from "./evaluation/external-blockers.ts";
import type { ApiKeyStatus } from "./execution/api-key-rejection.ts";
import type { ObservedFleet } from "./observed-fleet.ts";
import type { PolicySet } from "./policy-set.ts";
import type { RemediationState } from "./state/journaled-state.ts";

/** The policies of a configuration, and the limits over them. */
export interface RemediationRules {
  readonly policies: readonly PolicyRule[];
  readonly safety: Safety;
  readonly intervals: readonly TimeInterval[];
}

/** Dependencies of the remediation controller. */
export interface RemediationControllerDeps {
  readonly rules: RemediationRules;
  /** `service.base_url`, which identifies the service that the nodes belong to. */
  readonly serviceUrl: string;
  readonly remediationState: RemediationState;
  readonly journal: Journal;
  readonly client: ApiClient;
  readonly inventory: Inventory;
  readonly sessionWalks: Pick<SessionWalkHistory, "acceptable" | "acceptMissing" | "acceptsMissing">;
  /** Counts and logs what is wrong with the details that are read before an action and to verify one. */
  readonly detailReporter: CollectorReporter;
  readonly notifier: Notifier;
  readonly externalBlockers: ExternalBlockers;
  readonly clock: Clock;
  readonly metrics: DaemonMetrics;
  readonly log: Log;
  /** Called after a read of a node, so that a new snapshot is published soon. */
  readonly onRead: () => void;
}

/** The parts of one controller. Each file takes a `Pick` of those that it uses. */
export interface RemediationContext extends RemediationControllerDeps {
  readonly policies: PolicySet;
  readonly observed: ObservedFleet;
  readonly apiKey: ApiKeyStatus;
  readonly externalBlockerCache: ExternalBlockerCache;
}
