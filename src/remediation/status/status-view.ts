import { EPISODE_STATES } from "../../model/label-values.ts";
import { ACTION_KINDS, MODES } from "../../model/policy/policy.ts";
import { ACTION_OUTCOMES } from "../../model/remediation/episode.ts";
import type { Journal } from "../../model/remediation/journal.ts";
import { findBlockers } from "../../policy/decision.ts";
import { type ActivePolicy, type GuardFacts, isDryRun } from "../../policy/facts.ts";
import { limitsByName } from "../../policy/guards/limits.ts";
import { presentTimer, toTimerRow } from "../../policy/timers/timer.ts";
import type { RemediationContext } from "../context.ts";
import type { CandidateDeps } from "../evaluation/candidates.ts";
import { buildCandidate } from "../evaluation/candidates.ts";
import { type FleetHealth, PAUSED } from "../evaluation/fleet-health.ts";
import type { InventoryTrust, InventoryTrustTracker } from "../evaluation/inventory-trust.ts";
import {
  NODE_MARKS,
  type NodeMark,
  type PolicyExplanation,
  type PolicyStatus,
  type RemediationStatus,
  type RemediationView,
} from "./views.ts";

type ViewDeps = CandidateDeps & Pick<RemediationContext, "metrics">;

/** Dependencies of the status view. */
export interface StatusViewDeps {
  readonly context: ViewDeps;
  readonly fleetHealth: FleetHealth;
  readonly trustTracker: InventoryTrustTracker;
  readonly journal: Pick<Journal, "decisions" | "actions" | "episodes" | "operatorCommands">;
  /** Whether fleet data is trusted now. */
  readonly trust: () => InventoryTrust;
}

/** Most rows of each kind in an explanation. */
const ROWS_PER_NODE_MAX = 50;

/** Creates the status view of remediation. */
export function createStatusView(parts: StatusViewDeps): RemediationView {
  const { context, journal } = parts;
  const { records } = context.remediationState;
  return {
    status: () => remediationStatus(parts),
    policies: () => context.policies.active().map((active) => policyStatus(context, active)),
    explain(node) {
      const known = context.observed.slotOf(node) !== null;
      const query = { node, limit: ROWS_PER_NODE_MAX };
      return {
        node,
        known,
        at: context.remediationState.now(),
        policies: known ? explainPolicies(parts, node) : [],
        // A given-up node that was released keeps its row for the tries that count since.
        holds: records.holdsOn(node).filter(({ kind, until }) => kind !== "given_up" || until === null),
        episodes: journal.episodes(query),
        actions: journal.actions(query),
        decisions: journal.decisions(query),
        operatorCommands: journal.operatorCommands(query),
      };
    },
    decisions: (query) => journal.decisions(query),
    actions: (query) => journal.actions(query),
    operatorCommands: (query) => journal.operatorCommands(query),
    approvals: () => [...records.actions()].filter(({ state }) => state === "awaiting"),
    nodeMarks: () => nodeMarksOf(context),
  };
}

function remediationStatus({ context, fleetHealth, trustTracker, trust }: StatusViewDeps): RemediationStatus {
  const { remediationState, rules, observed } = context;
  const paused = remediationState.records.fact(PAUSED);
  return {
    mode: rules.safety.mode,
    paused: paused === null ? null : (JSON.parse(paused) as RemediationStatus["paused"]),
    breaker: fleetHealth.breaker().open,
    trust: trust().blockers,
    stormUntil: fleetHealth.storm()?.until ?? null,
    journal: remediationState.journalProblem(),
    largestWalkNodes: trustTracker.largestWalkNodes(),
    limits: limitsByName(rules.safety, observed.latest?.snapshot.fleet.count ?? 0),
    inFlight: [...remediationState.records.actions()].filter(({ state, shadow: dryRun }) => state === "sent" && !dryRun)
      .length,
  };
}

function policyStatus({ remediationState }: ViewDeps, active: ActivePolicy): PolicyStatus {
  const { rule } = active.policy;
  const { records } = remediationState;
  const timers = [...records.timersOf(rule.name)];
  const firing = timers.filter(([, { state }]) => state === "firing").map(([node]) => node);
  const open = records
    .openEpisodes()
    .filter(({ policy, shadow: dryRun }) => policy === rule.name && dryRun === isDryRun(active));
  const givenUp = firing.filter((node) => {
    if (records.openEpisode(node, isDryRun(active)) !== null) return false;
    return (
      records.closedEpisodesOf(node, isDryRun(active)).findLast(({ policy }) => policy === rule.name)?.state ===
      "given_up"
    );
  });
  const counts = Object.fromEntries(
    EPISODE_STATES.map((state) => [state, open.filter((episode) => episode.state === state).length]),
  );
  return {
    rule,
    mode: active.mode,
    hasFallenBack: active.hasFallenBack,
    isProven: active.proven,
    pending: timers.length - firing.length,
    firing: firing.length,
    episodes: { ...counts, pending: timers.length - firing.length, given_up: givenUp.length },
  };
}

function explainPolicies({ context, fleetHealth, trust }: StatusViewDeps, node: string): PolicyExplanation[] {
  const facts = new Map<boolean, GuardFacts>();
  const factsOf = (dryRun: boolean): GuardFacts => {
    const known = facts.get(dryRun) ?? fleetHealth.guardFacts(dryRun, trust());
    facts.set(dryRun, known);
    return known;
  };
  return context.policies.active().flatMap((active): PolicyExplanation[] => {
    const candidate = buildCandidate(context, active, node);
    if (candidate === null) return [];
    const { evaluation } = candidate;
    const { name, forMs } = active.policy.rule;
    const timer = toTimerRow(name, node, candidate.timer);
    const episode =
      candidate.episode ?? context.remediationState.records.suspendedEpisode(name, node, isDryRun(active));
    return [
      {
        policy: name,
        mode: active.mode,
        verdict: evaluation.verdict,
        matched: evaluation.matched,
        unknowns: evaluation.unknowns.map(({ field, why }) => ({ field: field ?? "the expression", why })),
        fields: evaluation.fields(),
        timer: timer === null ? null : presentTimer(timer),
        forMs,
        episode,
        blockers: findBlockers(candidate, factsOf(isDryRun(active))),
      },
    ];
  });
}

function nodeMarksOf({ remediationState, policies }: ViewDeps): ReadonlyMap<string, NodeMark> {
  const { records } = remediationState;
  const marks = new Map<string, NodeMark>();
  const mark = (node: string, what: NodeMark) => {
    if (NODE_MARKS.indexOf(what) > NODE_MARKS.indexOf(marks.get(node) ?? "none")) marks.set(node, what);
  };
  for (const { rule } of policies.all) {
    for (const [node, { state }] of records.timersOf(rule.name)) mark(node, state === "firing" ? "firing" : "pending");
  }
  for (const { node, shadow: dryRun, state } of records.openEpisodes()) {
    if (dryRun) mark(node, "shadow");
    else mark(node, state === "acting" ? "acting" : "episode");
  }
  const now = remediationState.now();
  for (const { node, kind, until } of records.allHolds()) {
    if (kind !== "given_up" && (until === null || until > now)) mark(node, "held");
  }
  for (const { node, state } of records.actions()) if (state === "awaiting") mark(node, "awaiting");
  return marks;
}

/** Sets the gauges of the status and the policies. */
export function setStatusGauges(context: ViewDeps, view: RemediationView): void {
  const { metrics } = context;
  const status = view.status();
  metrics.set("proxywarden_trusted", {}, status.trust.length === 0 ? 1 : 0);
  metrics.set("proxywarden_paused", {}, status.paused === null ? 0 : 1);
  metrics.set("proxywarden_breaker_open", {}, status.breaker === null ? 0 : 1);
  metrics.set("proxywarden_journal_writable", {}, status.journal === null ? 1 : 0);
  for (const [limit, nodes] of Object.entries(status.limits)) {
    metrics.set("proxywarden_limit_nodes", { limit }, nodes);
  }
  for (const { rule, mode, episodes } of view.policies()) {
    const policy = rule.name;
    for (const state of EPISODE_STATES) metrics.set("proxywarden_episodes", { policy, state }, episodes[state] ?? 0);
    for (const each of MODES) metrics.set("proxywarden_policy_mode", { policy, mode: each }, each === mode ? 1 : 0);
  }
}

/** Initializes the counters of each policy at 0, so that `increase()` sees their first increment. */
export function initializeCounters({ metrics, policies }: ViewDeps): void {
  for (const { rule } of policies.all) {
    metrics.inc("proxywarden_decisions_total", { policy: rule.name, verdict: "act", reason: "all_clear" }, 0);
    const kinds = ACTION_KINDS.filter((kind) => rule.steps.some(({ action }) => action === kind));
    for (const action of kinds) {
      for (const outcome of ACTION_OUTCOMES)
        metrics.inc("proxywarden_actions_total", { policy: rule.name, action, outcome }, 0);
    }
  }
}

/** Removes the gauges of all policies. */
export function removePolicyGauges({ metrics, policies }: ViewDeps): void {
  for (const { rule } of policies.all) {
    for (const state of EPISODE_STATES) metrics.remove("proxywarden_episodes", { policy: rule.name, state });
    for (const mode of MODES) metrics.remove("proxywarden_policy_mode", { policy: rule.name, mode });
  }
}
