import type { Safety } from "../config/schema/safety.ts";
import type { SessionWalkHistory } from "../inventory/sessions/session-walks.ts";
import type { PolicySpec } from "../model/policy/policy.ts";
import type { TimeInterval } from "../model/policy/time-interval.ts";
import type { ExternalBlockers } from "../model/ports.ts";
import type { Journal } from "../model/remediation/journal.ts";
import type { DecisionContext } from "./evaluation/candidates.ts";
import type { EpisodeContext } from "./execution/episode-transitions.ts";
import type { ServiceContext } from "./execution/executor.ts";

/** The policies of a configuration, and the limits over them. */
export interface RemediationConfig {
  readonly policies: readonly PolicySpec[];
  readonly safety: Safety;
  readonly intervals: readonly TimeInterval[];
}

/** Dependencies of the remediation controller. */
export interface RemediationControllerDeps
  extends Pick<DecisionContext, "clock" | "remediationState" | "config">,
    Pick<EpisodeContext, "log" | "metrics" | "notifier">,
    Pick<ServiceContext, "client" | "detailReporter" | "inventory"> {
  /** `service.base_url`, which identifies the service that the nodes belong to. */
  readonly serviceUrl: string;
  readonly journal: Journal;
  readonly sessionWalks: Pick<SessionWalkHistory, "acceptable" | "acceptMissing" | "acceptsMissing">;
  readonly externalBlockers: ExternalBlockers;
  /** Called after a read of a node, so that a new snapshot is published soon. */
  readonly onRead: () => void;
}

/** Everything that the parts of one controller depend on. Only the controller and the round have all of it. */
export type RemediationContext = RemediationControllerDeps & DecisionContext & EpisodeContext & ServiceContext;
