import { byName } from "../../base/by-name.ts";
import { oncePerKey } from "../../base/once-per-key.ts";
import { eachInSteps } from "../../base/steps.ts";
import { EPISODE_STATES } from "../../model/label-values.ts";
import type { NodeId } from "../../model/node.ts";
import { EXPLAINED_ROWS_MAX, type JournalQueries } from "../../model/remediation/journal.ts";
import type { EpochMs } from "../../model/time.ts";
import { findBlockers } from "../../policy/decision.ts";
import type { PolicyEvaluation } from "../../policy/evaluation.ts";
import { findFiringNodes } from "../../policy/fleet-counts.ts";
import { limitsByName } from "../../policy/guards/safety-limits.ts";
import { stormCause } from "../../policy/guards/storm-and-breaker.ts";
import { isInFlight } from "../../policy/own-actions.ts";
import { type ActivePolicy, isDryRun } from "../../policy/policy.ts";
import { presentTimer, toTimerRow } from "../../policy/timer.ts";
import type { DecisionContext } from "../context.ts";
import type { DecisionLog } from "../evaluation/action-planner.ts";
import { buildCandidate, type FactsOf, isGivenUp } from "../evaluation/decision-input.ts";
import { FleetHealth } from "../evaluation/fleet-health.ts";
import { type InventoryTrustTracker, largestWalkNodes } from "../evaluation/inventory-trust.ts";
import { type PolicyEvaluator, readsStatus } from "../evaluation/policy-evaluator.ts";
import { ObservedFleet } from "../observed-fleet.ts";
import { pauseAt } from "../operator-holds.ts";
import { PolicySet } from "../policy-set.ts";
import { heldNodeCountOf, heldNodesOf, nodeMarksOf } from "./node-status.ts";
import type { RoundHealth } from "./round-health.ts";
import type { HeldNodesQuery, NodeMark, RemediationView } from "./views.ts";

type ViewDeps = DecisionContext & { readonly journal: JournalQueries };

/** Dependencies of the status view. */
interface StatusViewDeps {
  readonly context: ViewDeps;
  readonly fleetHealth: FleetHealth;
  /** What the leader observes and decides, or null on a standby, which observes and decides nothing. */
  readonly leader: {
    readonly trustTracker: InventoryTrustTracker;
    readonly roundHealth: RoundHealth;
    readonly policyEvaluator: PolicyEvaluator;
    readonly decisionLog: DecisionLog;
    readonly collectFacts: FactsOf;
  } | null;
  /** Returns why a standby observes no node. Absent on the leader. */
  unobserved?(): string;
}

/**
 * Creates the status view of remediation. Methods that return promises read rows of the journal, and reject if it can't
 * be read. Everything else is in memory. What takes long in a mass event is done in steps of less than a millisecond.
 */
export function createStatusView(deps: StatusViewDeps) {
  const { context, leader } = deps;
  const { journal } = context;
  const { records } = context.remediationState;
  const lastDecisions = () => leader && [...leader.decisionLog.lastDecisions()];
  return {
    status: () => remediationStatus(deps),
    /** The names of the policies, in order of evaluation. */
    policyNames: (): readonly string[] => context.policies.all.map(({ spec }) => spec.name),
    policies: () => policyStatuses(deps),
    /** Explains, in steps, why a node was or was not acted on. */
    *explain(node: NodeId) {
      const policies = yield* explainPolicies(deps, node);
      const now = context.remediationState.now();
      return {
        node,
        /** Whether the node is listed now. */
        known: context.observed.slotOf(node) !== null,
        at: now,
        policies,
        // The row of a policy stays after its release, because attempts are counted from there.
        holds: records.holdsOn(node).filter(({ until }) => until === null || until > now),
      };
    },
    /** Returns the latest rows about a node, up to the time `until` if it is given. */
    async historyOf(node: NodeId, until?: EpochMs) {
      const query = { node, limit: EXPLAINED_ROWS_MAX, ...(until === undefined ? {} : { until }) };
      const [episodes, actions, decisions, operatorCommands] = await Promise.all([
        journal.episodes(query),
        journal.actions(query),
        journal.decisions(query),
        journal.operatorCommands(query),
      ]);
      return { episodes, actions, decisions, operatorCommands };
    },
    decisions: journal.decisions,
    actions: journal.actions,
    operatorCommands: journal.operatorCommands,
    /** Returns the actions that wait for approval, or those that were approved and are not being sent yet. */
    approvals: (state: "awaiting" | "approved" = "awaiting") =>
      [...records.actions()]
        .filter((action) => action.state === state)
        .map((action) => ({
          ...action,
          /** When the approval, or the request for it, expires unless the daemon goes down before that. */
          expiresAt: (action.approvedAt ?? action.createdAt) + context.config.safety.approvalTtlMs,
        })),
    heldNodes: (query: HeldNodesQuery) => heldNodesOf(context, lastDecisions(), query),
    heldNodeCount: () => heldNodeCountOf(context, lastDecisions()),
    /** Calls `mark` with every mark of every node that has one. Only the most important one of a node counts. */
    nodeMarks: (mark: (node: NodeId, mark: NodeMark) => void) => nodeMarksOf(context, lastDecisions(), mark),
  };
}

/**
 * Creates the view of a daemon that stands by, which shows what the leader has journaled. It changes nothing, and knows
 * only what was journaled about nodes. `leader` names the leader in texts.
 */
export function createStandbyView(
  deps: Pick<ViewDeps, "clock" | "journal" | "remediationState" | "config">,
  leader: () => string,
): RemediationView {
  const context = {
    ...deps,
    policies: new PolicySet(deps.config, deps.remediationState.records),
    observed: new ObservedFleet({ serviceTime: () => null }),
  };
  const unobserved = () => `this daemon stands by; only the leader, ${leader()}, observes the fleet`;
  return createStatusView({ context, fleetHealth: new FleetHealth(context), leader: null, unobserved });
}

/** Returns what holds all actions, and the effective limits. */
function remediationStatus({ context, fleetHealth, leader, unobserved }: StatusViewDeps) {
  const { remediationState, config, observed } = context;
  const { records } = remediationState;
  const { breaker, storm } = fleetHealth.state(false);
  return {
    /** `safety.mode`, which is the highest mode that any policy may have. */
    mode: config.safety.mode,
    paused: pauseAt(records, remediationState.now()),
    breaker: breaker.open,
    /** Why fleet data is not trusted, or empty if it is. */
    trust: leader?.trustTracker.current().blockers ?? [{ reason: "warming_up", detail: unobserved!() }],
    stormUntil: storm?.until ?? null,
    /** Why the storm began, or null if there is none. */
    stormCause: storm && stormCause(storm),
    /** Why actions can't be recorded, or why a standby can't read the journal, or null if nothing is wrong. */
    journal: remediationState.journalProblem(),
    /** Why no node is healed although nothing else holds actions: rounds fail, or one does not end. Null if they succeed. */
    roundFailure: leader?.roundHealth.failure() ?? null,
    /** Nodes of the largest complete walk, with which the inventory is compared, or 0 if there was none yet. */
    largestWalkNodes: largestWalkNodes(records),
    /** The effective limits for the current fleet, in nodes or actions, by name. */
    limits: limitsByName(config.safety, observed.latest?.snapshot.fleet.count ?? 0),
    inFlight: [...records.actions()].filter((action) => isInFlight(action) && !action.dryRun).length,
  };
}

/** Returns the status of each policy, in steps. */
function* policyStatuses({ context: { policies, remediationState }, leader }: StatusViewDeps) {
  const { records } = remediationState;
  const statuses = [];
  const counted = policies.active().map((active) => ({
    active,
    dryRun: isDryRun(active),
    episodes: byName<string, number>(EPISODE_STATES, () => 0),
  }));
  const byPolicy = new Map(counted.map((each) => [each.active.policy.spec.name, each]));
  yield* eachInSteps(records.openEpisodes(), ({ policy, dryRun, state }) => {
    const counts = byPolicy.get(policy);
    if (counts?.dryRun === dryRun) counts.episodes[state]!++;
  });
  for (const { active, dryRun, episodes } of counted) {
    const { name } = active.policy.spec;
    let [pending, firing, givenUp] = [0, 0, 0];
    yield* eachInSteps(records.timersOf(name), ([node, { state }]) => {
      if (state !== "firing") pending++;
      else {
        firing++;
        if (isGivenUp(remediationState, name, node, dryRun)) givenUp++;
      }
    });
    statuses.push({
      ...active,
      /** As of the last complete walk, or null before the first and on a standby. */
      matched: leader?.policyEvaluator.matchedNodes(name) ?? null,
      pending,
      firing,
      /** Nodes whose condition was unknown when it was evaluated last, or null on a standby. */
      unknown: leader?.policyEvaluator.unknownNodes(name) ?? null,
      /** Number of episodes by state: of open ones, and of given-up ones whose node still fires. */
      episodes: { ...episodes, pending, given_up: givenUp } as Readonly<Record<string, number>>,
    });
  }
  return statuses;
}

/** Explains every policy on a node, in steps. */
function* explainPolicies(deps: StatusViewDeps, node: NodeId) {
  const { observed, policies, remediationState } = deps.context;
  // The counts of the fleet then don't block the event loop.
  if (observed.latest !== null) yield* findFiringNodes(observed.fleet, remediationState.records, policies.active());
  const factsOf = oncePerKey((dryRun: boolean) => deps.leader!.collectFacts(dryRun));
  const explained = [];
  for (const active of policies.active()) {
    yield;
    explained.push(...explainPolicy(deps, active, node, factsOf));
  }
  return explained;
}

/** Explains a policy on a node. On a standby only what is recorded is known; on the leader, an unlisted node has none. */
function explainPolicy({ context, unobserved }: StatusViewDeps, active: ActivePolicy, node: NodeId, factsOf: FactsOf) {
  const { records } = context.remediationState;
  const { name, forMs, steps } = active.policy.spec;
  const timer = toTimerRow(name, node, records.timer(name, node));
  const episode = records.episodeUnder(name, node, isDryRun(active));
  const candidate = buildCandidate(context, active, node);
  const isRecorded = timer !== null || episode !== null;
  if (candidate === null && (unobserved === undefined || !isRecorded)) return [];
  const { verdict, matched, unknowns, fields } = candidate?.evaluation ?? unknownEvaluation(unobserved!());
  const explanation = {
    policy: name,
    mode: active.mode,
    verdict,
    matched,
    /** Why the verdict is unknown, with each field and its problem. */
    unknowns,
    fields: fields(),
    timer: timer && presentTimer(timer),
    /**
     * When a record last stated a status other than the current one, on the journal's clock. The timer starts no
     * earlier. Null if the policy does not read the status, or if this process has seen no other status.
     */
    otherStatusAt: readsStatus(active.policy) ? otherStatusAt(context, node) : null,
    forMs,
    steps,
    episode,
    /** Everything that would hold an action now, even if the policy does not fire. Empty if it does not match the node. */
    blockers: candidate === null || matched === false ? [] : findBlockers(candidate, factsOf(isDryRun(active))),
  };
  return [explanation];
}

/** Returns the evaluation of a policy on a node that is not observed. */
const unknownEvaluation = (why: string) => ({
  verdict: "unknown" as const,
  matched: null,
  unknowns: [{ field: "the node", why }],
  fields: (): ReturnType<PolicyEvaluation["fields"]> => ({}),
});

function otherStatusAt({ observed, remediationState }: StatusViewDeps["context"], node: NodeId): EpochMs | null {
  const slot = observed.slotOf(node);
  const at = slot === null ? Number.NaN : observed.fleet.otherStatusAt.at(slot);
  return Number.isNaN(at) ? null : remediationState.epochOf(at);
}
