import type { Clock } from "../../model/ports.ts";
import type { JournalQueries } from "../../model/remediation/journal.ts";
import type { RemediationRules } from "../context.ts";
import { FleetHealth } from "../evaluation/fleet-health.ts";
import { ObservedFleet } from "../observed-fleet.ts";
import { PolicySet } from "../policy-set.ts";
import type { RemediationState } from "../state/journaled-state.ts";
import { createStatusView } from "./status-view.ts";
import type { RemediationView } from "./views.ts";

/** Dependencies of {@link createStandbyView}. */
export interface StandbyViewDeps {
  readonly rules: RemediationRules;
  /** What the leader has journaled, as it was last read. */
  readonly remediationState: RemediationState;
  readonly journal: JournalQueries;
  readonly clock: Clock;
  /** Names the leader in texts. */
  leader(): string;
}

/**
 * Creates the view of a daemon that stands by, which shows the journal. It changes nothing, and knows only what was
 * journaled about nodes.
 */
export function createStandbyView({
  rules,
  remediationState,
  journal,
  clock,
  leader,
}: StandbyViewDeps): RemediationView {
  const unobserved = () => `this daemon stands by; only the leader, ${leader()}, observes the fleet`;
  const context = {
    ...{ rules, remediationState, journal, clock },
    policies: new PolicySet(rules, remediationState.records),
    observed: new ObservedFleet({ serviceTime: () => null }),
  };
  return createStatusView({
    context,
    fleetHealth: new FleetHealth(context),
    trustBlockers: () => [{ reason: "warming_up", detail: unobserved() }],
    collectFacts: () => {
      throw new Error("a standby observes no fleet");
    },
    unobserved,
    lastDecisions: () => null,
    unknownNodes: () => null,
  });
}
