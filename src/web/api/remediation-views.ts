import type { ExternalBlocker, PolicyRule, Step } from "../../model/policy/policy.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import { HOLD_REASON_ROWS } from "../../policy/guards/all-guards.ts";
import type { PresentedTimer } from "../../policy/timers/timer.ts";
import type {
  NodeExplanation,
  PolicyExplanation,
  PolicyStatus,
  RemediationStatus,
  RemediationView,
} from "../../remediation/status/views.ts";
import { iso, isoAt, seconds } from "./notation.ts";
import type { RowsQuery } from "./query.ts";
import {
  type ActionView,
  actionView,
  type DecisionView,
  decisionView,
  type EpisodeView,
  episodeView,
  type HoldView,
  holdView,
  type OrderView,
  orderView,
} from "./row-views.ts";

/** A timer of a policy over a node, as JSON shows it. */
export interface TimerView {
  readonly state: string;
  readonly since: string;
  readonly true_seconds: number;
  readonly clear_seconds: number;
}

/** What a policy makes of a node, as JSON shows it. */
export interface PolicyExplanationView {
  readonly policy: string;
  readonly mode: string;
  readonly verdict: string;
  readonly matched: boolean | null;
  readonly unknowns: readonly { readonly field: string; readonly why: string }[];
  readonly fields: PolicyExplanation["fields"];
  readonly for_seconds: number;
  readonly timer: TimerView | null;
  readonly episode: EpisodeView | null;
  /** What each step of the policy does, in order. */
  readonly steps: readonly string[];
  /** `ends`: how the hold ends. */
  readonly blockers: readonly (Blocker & { readonly ends: string })[];
}

/** Why a node was, or was not, acted on, as JSON shows it. */
export interface ExplanationView {
  /** Whether the node is in the fleet now. */
  readonly known: boolean;
  readonly explained_at: string;
  readonly policies: readonly PolicyExplanationView[];
  readonly holds: readonly HoldView[];
  readonly episodes: readonly EpisodeView[];
  readonly actions: readonly ActionView[];
  readonly decisions: readonly DecisionView[];
  readonly orders: readonly OrderView[];
}

/** Shows a timer. */
export const timerView = ({ state, since, trueMs, clearMs }: PresentedTimer): TimerView => ({
  state,
  since: isoAt(since),
  true_seconds: Math.round(trueMs) / 1_000,
  clear_seconds: Math.round(clearMs) / 1_000,
});

/** The section `warden` of `GET /api/v1/status`. */
export const remediationStatusView = (status: RemediationStatus, approvals: number): object => ({
  mode: status.mode,
  paused:
    status.paused === null
      ? null
      : { at: isoAt(status.paused.at), reason: status.paused.reason, operator: status.paused.operator ?? null },
  breaker: status.breaker === null ? null : { opened_at: isoAt(status.breaker.openedAt), nodes: status.breaker.nodes },
  trusted: status.trust.length === 0,
  trust: status.trust,
  storm_until: iso(status.stormUntil),
  journal: status.journal,
  baseline_nodes: status.largestWalkNodes,
  limits: status.limits,
  in_flight: status.inFlight,
  awaiting_approval: approvals,
});

/** `GET /api/v1/policies`: all of them, or one, in the order in which they are asked. */
export const policiesView = (remediation: RemediationView, name: string | null): object => ({
  data: remediation
    .policies()
    .filter(({ rule }) => name === null || rule.name === name)
    .map(policyView),
});

/** `GET /api/v1/decisions`: newest first. */
export const decisionsView = (remediation: RemediationView, { awaiting: _, ...query }: RowsQuery): object => ({
  data: remediation.decisions(query).map(decisionView),
});

/** `GET /api/v1/orders`: newest first. */
export const ordersView = (remediation: RemediationView, { awaiting: _, ...query }: RowsQuery): object => ({
  data: remediation.operatorCommands(query).map(orderView),
});

/** `GET /api/v1/actions`: newest first. */
export function actionsView(remediation: RemediationView, { awaiting, ...query }: RowsQuery): object {
  if (!awaiting) return { data: remediation.actions(query).map(actionView) };
  const { node, policy, until = Number.POSITIVE_INFINITY, limit } = query;
  const chosen = remediation
    .approvals()
    .filter((action) => (node ?? action.node) === action.node && (policy ?? action.policy) === action.policy)
    .filter(({ createdAt }) => createdAt <= until);
  return { data: chosen.slice(0, limit).map(actionView) };
}

/** What `GET /api/v1/nodes/ID` says beside the node itself. */
export function explanationView(remediation: RemediationView, node: string): ExplanationView {
  const explanation = remediation.explain(node);
  const { known, at, holds, episodes, actions, decisions, operatorCommands: orders } = explanation;
  return {
    known,
    explained_at: isoAt(at),
    policies: policyExplanations(explanation, remediation.policies()),
    holds: holds.map(holdView),
    episodes: episodes.map(episodeView),
    actions: actions.map(actionView),
    decisions: decisions.map(decisionView),
    orders: orders.map(orderView),
  };
}

/** Whether anything was ever seen or done under the name that is explained. */
export const hasHistory = ({ known, holds, episodes, actions, decisions, orders }: ExplanationView): boolean =>
  known || [holds, episodes, actions, decisions, orders].some((rows) => rows.length > 0);

function policyExplanations(
  { policies }: NodeExplanation,
  statuses: readonly PolicyStatus[],
): readonly PolicyExplanationView[] {
  const steps = new Map(statuses.map(({ rule }) => [rule.name, rule.steps.map(stepName)]));
  return policies.map((each) => policyExplanationView(each, steps.get(each.policy) ?? []));
}

const policyExplanationView = (each: PolicyExplanation, steps: readonly string[]): PolicyExplanationView => ({
  policy: each.policy,
  mode: each.mode,
  verdict: each.verdict,
  matched: each.matched,
  unknowns: each.unknowns,
  fields: each.fields,
  for_seconds: each.forMs / 1_000,
  timer: each.timer === null ? null : timerView(each.timer),
  episode: each.episode === null ? null : episodeView(each.episode),
  steps,
  blockers: each.blockers.map((blocker) => ({
    ...blocker,
    ends: HOLD_REASON_ROWS[blocker.reason].ends.replaceAll("`", ""),
  })),
});

const policyView = (status: PolicyStatus): object => ({
  name: status.rule.name,
  mode: status.mode,
  fallen: status.hasFallenBack,
  proven: status.isProven,
  pending: status.pending,
  firing: status.firing,
  episodes: status.episodes,
  rule: ruleView(status.rule),
});

/** A policy in the words of its file. */
const ruleView = (rule: PolicyRule): object => ({
  mode: rule.mode,
  match: rule.match,
  when: rule.when,
  for_seconds: seconds(rule.forMs),
  clear_for_seconds: seconds(rule.clearForMs),
  max_age_seconds: seconds(rule.maxAgeMs),
  steps: rule.steps.map(stepView),
  retry: {
    episodes: rule.retry.episodes,
    every_seconds: seconds(rule.retry.everyMs),
    forget_after_seconds: seconds(rule.retry.forgetAfterMs),
  },
  windows: rule.windows,
  blocked_by: rule.blockedBy.map(blockedByView),
});

function stepView(step: Step): object {
  switch (step.action) {
    case "notify":
      return { action: step.action, receiver: step.receiver };
    case "disconnect":
      return { action: step.action, verify: verifyView(step) };
    case "reboot":
      return { action: step.action, force: step.force, verify: verifyView(step) };
    case "quarantine":
      return {
        action: step.action,
        duration_seconds: seconds(step.durationMs),
        reason: step.reason,
        verify: verifyView(step),
      };
    default:
      return step satisfies never;
  }
}

const verifyView = ({ verify }: Exclude<Step, { action: "notify" }>): object => ({
  within_seconds: seconds(verify.withinMs),
  expect: verify.expect,
});

/** What a step does, in a word or two. */
export const stepName = (step: Step): string =>
  step.action === "reboot" && step.force ? "forced reboot" : step.action;

const blockedByView = (blocked: ExternalBlocker): object =>
  blocked.kind === "query" ? { query: blocked.query } : { alerts: blocked.matchers };
