import { type DurationMs, formatDuration, formatSecondsLeft, SECOND_MS } from "../../base/duration.ts";
import { oncePerKey } from "../../base/once-per-key.ts";
import type { NodeId } from "../../model/node.ts";
import type { Action, Blocker, Episode } from "../../model/remediation/episode.ts";
import { formatTime } from "../../model/time.ts";
import { canProceed, findCanary, planAction } from "../../policy/decision.ts";
import { isInFlight } from "../../policy/episodes/attempts.ts";
import { evaluateExpression, type Verdict } from "../../policy/evaluation.ts";
import { countFleet } from "../../policy/fleet-counts.ts";
import { type Candidate, type GuardFacts, nextStep } from "../../policy/guards/guard-types.ts";
import { assumedActionTimes, effectiveLimits } from "../../policy/guards/safety-limits.ts";
import { windowBlockers } from "../../policy/guards/time-window.ts";
import { type ActivePolicy, isDryRun, type Policy, policySources } from "../../policy/policy.ts";
import type { DecisionContext, ServiceContext } from "../context.ts";
import { pauseAt } from "../operator-holds.ts";
import type { FleetHealth } from "./fleet-health.ts";
import type { InventoryTrustTracker } from "./inventory-trust.ts";

/** A policy that reads sessions acts only within this time after a walk of the sessions. */
const SESSION_WALK_AGE_MS_MAX: DurationMs = 30 * SECOND_MS;

/** Returns the current state of a node under a policy, or null if the node is not listed. */
export function buildCandidate(context: DecisionContext, active: ActivePolicy, node: NodeId): Candidate | null {
  const { remediationState, observed, clock } = context;
  const slot = observed.slotOf(node);
  if (slot === null) return null;
  const { spec } = active.policy;
  const evaluation = observed.evaluate(active.policy, slot, clock.monotonic());
  const location = observed.locationOf(node);
  const open = remediationState.records.openEpisode(node, isDryRun(active));
  const episode = open?.policy === spec.name ? open : null;
  return {
    active,
    node: { id: node, status: observed.statusAt(slot), ...location, protected: isProtected(context, slot) },
    timer: remediationState.records.timer(spec.name, node),
    episode,
    evaluation,
    observedAt: remediationState.epochOf(evaluation.at),
    approved: episode !== null && findApprovedAction(context, episode.id, episode.step) !== null,
  };
}

/** Returns the candidate of an episode's next step, or null if the node is not listed, or no step is due. */
export function findCandidate(context: DecisionContext, policy: string, node: NodeId): Candidate | null {
  const active = context.policies.findActive(policy);
  const candidate = active === null ? null : buildCandidate(context, active, node);
  return candidate?.episode != null && awaitsNextStep(context, candidate.episode) ? candidate : null;
}

/**
 * Returns whether the next step of an episode may be decided on, which requires that none of its actions is in flight.
 */
export const awaitsNextStep = ({ remediationState }: DecisionContext, { id, state }: Episode): boolean =>
  state === "firing" && !remediationState.records.actionsOf(id).some(isInFlight);

/** Returns the action of a candidate's next step, which is either the one that an operator approved or a new one. */
export function nextAction(context: DecisionContext, candidate: Candidate): Action {
  const { id, step } = candidate.episode!;
  const approved = findApprovedAction(context, id, step);
  if (approved !== null) return { ...approved, state: "intended" };
  const { remediationState } = context;
  return planAction(candidate, remediationState.records.nextId("act"), remediationState.now());
}

/**
 * Returns the approved action of a step if it was not sent yet, or null if there is none or its approval has expired.
 */
const findApprovedAction = (context: DecisionContext, episode: string, step: number): Action | null =>
  context.remediationState.records
    .actionsOf(episode)
    .find(
      (action) => action.step === step && action.state === "approved" && approvalExpiry(context, action) === null,
    ) ?? null;

/**
 * Returns why an approval, or a request for one, has expired, or null if it has not. `safety.approval_ttl` is measured
 * on the journal's clock, so downtime counts. A downtime or suspension of unknown length may be longer than it.
 */
export function approvalExpiry(context: DecisionContext, { createdAt, approvedAt }: Action): string | null {
  const { remediationState, config } = context;
  const { approvalTtlMs } = config.safety;
  const since = approvedAt ?? createdAt;
  if (remediationState.clock.isAgeUnknown(since))
    return `it is unknown how long ago it was ${approvedAt === undefined ? "requested" : "approved"}, because the daemon was down, the machine was suspended, or the wall clock was changed`;
  if (remediationState.now() - since < approvalTtlMs) return null;
  const ttl = formatDuration(approvalTtlMs);
  return approvedAt === undefined ? `it was not approved within ${ttl}` : `the approval expired after ${ttl}`;
}

/**
 * Returns the blocker of an action whose policy reads sessions that were not walked recently, or null if there is none.
 * The read of a node before an action does not include its sessions.
 */
export function oldSessionsBlocker(
  { observed, clock }: Pick<DecisionContext, "observed" | "clock">,
  candidate: Candidate,
): Blocker<"verdict_unknown"> | null {
  const { policy } = candidate.active;
  if (nextStep(candidate)?.action === "notify" || !policySources(policy).includes("sessions")) return null;
  const walkedAt = observed.latest?.snapshot.sessions?.settledAt ?? null;
  const ageMs = walkedAt === null ? Number.POSITIVE_INFINITY : clock.monotonic() - walkedAt;
  if (ageMs <= SESSION_WALK_AGE_MS_MAX) return null;
  const read =
    walkedAt === null ? "the sessions have not been read" : `the sessions were read ${formatSecondsLeft(ageMs)} ago`;
  const limit = formatDuration(SESSION_WALK_AGE_MS_MAX);
  const detail = `${read}; a policy that reads them acts only within ${limit} of their walk`;
  return { reason: "verdict_unknown", detail };
}

function isProtected(context: DecisionContext, slot: number): Verdict {
  const { observed, policies, clock } = context;
  if (policies.protectedNodes === null) return "false";
  return evaluateExpression(policies.protectedNodes, slot, observed.input(null, clock.monotonic())).verdict;
}

/** Returns the facts for real actions or for dry runs. */
export type FactsOf = (dryRun: boolean) => GuardFacts;

type FactsDeps = DecisionContext & Pick<ServiceContext, "apiKey" | "client" | "externalBlockerCache">;

/** Returns a function that collects the current facts. */
export const createGuardFacts =
  (context: FactsDeps, fleetHealth: FleetHealth, trustTracker: InventoryTrustTracker): FactsOf =>
  (dryRun) => {
    const { apiKey, observed, policies, remediationState, config } = context;
    const { records } = remediationState;
    const trust = trustTracker.current();
    const now = remediationState.now();
    const fleetCounts = countFleet(observed.fleet, records, policies.active(), dryRun, now);
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

/** Returns a function that returns the blockers of a policy. It evaluates the windows of each policy only once. */
function policyBlockers({ client, clock, externalBlockerCache, config }: FactsDeps): GuardFacts["policyBlockers"] {
  // A window must be open by the wall clock and, if its time is known, by the service's.
  const instants = [clock.now(), client.serviceTime(clock.monotonic())].filter((at) => at !== null);
  const intervals = new Map(config.time_intervals.map((interval) => [interval.name, interval]));
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
