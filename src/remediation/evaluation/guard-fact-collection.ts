import { oncePerKey } from "../../base/once-per-key.ts";
import type { Steps } from "../../base/steps.ts";
import { formatTime } from "../../model/time.ts";
import { canProceed, findCanary } from "../../policy/decision.ts";
import { countFleet } from "../../policy/fleet-counts.ts";
import type { GuardFacts } from "../../policy/guard-facts.ts";
import { assumedActionTimes, effectiveLimits } from "../../policy/guards/safety-limits.ts";
import { windowBlockers } from "../../policy/guards/time-window.ts";
import { isInFlight } from "../../policy/own-actions.ts";
import type { Policy } from "../../policy/policy.ts";
import type { DecisionContext, ServiceContext } from "../context.ts";
import { pauseAt } from "../operator-holds.ts";
import { buildCandidate } from "./candidates.ts";
import type { FleetHealth } from "./fleet-health.ts";
import type { InventoryTrustTracker } from "./inventory-trust.ts";

/** Returns the facts for real actions or for dry runs. */
export type FactsOf = (dryRun: boolean) => GuardFacts;

/** The steps that collect the facts. All facts except the counts of the fleet are as of the last step. */
export type FactsSteps = (dryRun: boolean) => Steps<GuardFacts>;

type FactsDeps = DecisionContext & Pick<ServiceContext, "apiKey" | "client" | "externalBlockerCache">;

/** Returns a function that collects the current facts. */
export const createGuardFacts = (
  context: FactsDeps,
  fleetHealth: FleetHealth,
  trustTracker: InventoryTrustTracker,
): FactsSteps =>
  function* collectFacts(dryRun) {
    const { apiKey, observed, policies, remediationState, config } = context;
    const { records } = remediationState;
    const fleetCounts = yield* countFleet(observed.fleet, records, policies.active(), dryRun, remediationState.now());
    yield;
    const trust = trustTracker.current();
    const now = remediationState.now();
    const assumed = dryRun ? [] : assumedActionTimes(remediationState.firstStartedAt(), config.safety, now);
    const countedFrom = now - config.safety.maxActions.perMs;
    const actions = [...records.actions()].filter((action) => action.dryRun === dryRun);
    const sentAtTimes = actions.flatMap(({ sentAt }) => (sentAt !== null && sentAt > countedFrom ? [sentAt] : []));
    const facts: GuardFacts = {
      now,
      safety: config.safety,
      limits: effectiveLimits(config.safety, fleetCounts.nodes),
      fleetCounts,
      records,
      nameOf: (node) => observed.nameOf(node),
      pauseDetail: pauseDetail(context),
      journalError: remediationState.journalProblem(),
      credentialsError: dryRun ? null : apiKey.holdReason(),
      trustBlockers: trust.blockers,
      ...fleetHealth.state(dryRun),
      inFlight: actions.filter(isInFlight),
      sentAtTimes: [...assumed, ...sentAtTimes],
      assumedActionCount: assumed.length,
      policyBlockers: policyBlockers(context),
      canaryEpisode: oncePerKey((policy: Policy) =>
        findCanary(policy, records, ({ node }) => {
          const candidate = buildCandidate(context, policies.activate(policy), node);
          return candidate !== null && canProceed(candidate, facts);
        }),
      ),
    };
    return facts;
  };

/** Evaluates the windows of each policy only once, because many candidates need them. */
function policyBlockers({ client, clock, externalBlockerCache, config }: FactsDeps): GuardFacts["policyBlockers"] {
  // A window must be open by the wall clock and, if its time is known, by the service's.
  const instants = [clock.now(), client.serviceTime(clock.monotonic())].filter((at) => at !== null);
  const intervals = new Map(config.intervals.map((interval) => [interval.name, interval]));
  const blockersOfWindows = oncePerKey(({ spec }: Policy) => windowBlockers(spec.windows, intervals, instants));
  return (policy) => [...blockersOfWindows(policy), ...externalBlockerCache.blockers(policy)];
}

function pauseDetail({ remediationState }: FactsDeps): string | null {
  const pause = pauseAt(remediationState.records, remediationState.now());
  if (pause === null) return null;
  const { at, until = null, reason, operator } = pause;
  const by = operator === undefined ? "" : ` by ${operator}`;
  const end = until === null ? "" : `, until ${formatTime(until)}`;
  return `since ${formatTime(at)}${by}${end}: ${reason}`;
}
