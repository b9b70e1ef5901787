import type { PolicyRule } from "../../model/policy/policy.ts";
import type { Clock } from "../../model/ports.ts";
import type { JournalQueries } from "../../model/remediation/journal.ts";
import { presentTimer, toTimerRow } from "../../policy/timers/timer.ts";
import type { RemediationRules } from "../context.ts";
import { FleetHealth } from "../evaluation/fleet-health.ts";
import { journaledWalks, largestOf } from "../evaluation/inventory-trust.ts";
import { ObservedFleet } from "../observed-fleet.ts";
import { PolicySet } from "../policy-set.ts";
import type { RemediationState } from "../state/journaled-state.ts";
import { createStatusView } from "./status-view.ts";
import type { NodeExplanation, PolicyExplanation, RemediationView } from "./views.ts";

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
  const { records } = remediationState;
  const unobserved = () => `this daemon stands by; only the leader, ${leader()}, observes the fleet`;
  const context = {
    ...{ rules, remediationState, journal, clock },
    policies: new PolicySet(rules, records),
    observed: new ObservedFleet({ serviceTime: () => null }),
  };
  const view = createStatusView({
    context,
    fleetHealth: new FleetHealth(context),
    trustTracker: {
      current: () => ({ blockers: [{ reason: "warming_up", detail: unobserved() }], isUntrusted: false }),
      largestWalkNodes: () => largestOf(journaledWalks(records)),
    },
    // No node is listed, so nothing is asked of the guards.
    guardFacts: null,
    lastDecisions: () => null,
  });
  return {
    ...view,
    explain: (node): NodeExplanation => ({
      ...view.explain(node),
      policies: context.policies.active().flatMap(({ policy, mode }) => {
        const explained = explainFromRecords(remediationState, policy.rule, node);
        const unknowns = [{ field: "the node", why: unobserved() }];
        return explained === null ? [] : [{ ...explained, mode, unknowns }];
      }),
    }),
  };
}

/** Returns what is recorded about a node under a policy, or null. */
function explainFromRecords(
  { records }: RemediationState,
  { name, forMs, steps }: PolicyRule,
  node: string,
): Omit<PolicyExplanation, "mode" | "unknowns"> | null {
  const timer = toTimerRow(name, node, records.timer(name, node));
  const episode = records.openEpisodesOf(node).findLast(({ policy }) => policy === name) ?? null;
  if (timer === null && episode === null) return null;
  return {
    policy: name,
    verdict: "unknown",
    matched: null,
    fields: {},
    timer: timer === null ? null : presentTimer(timer),
    forMs,
    steps,
    episode,
    blockers: [],
  };
}
