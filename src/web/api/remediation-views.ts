import type { PolicySpec, Step } from "../../config/schema/policy.ts";
import type { ExternalBlocker } from "../../model/policy/policy.ts";
import type { JournalQuery } from "../../model/remediation/journal.ts";
import { isoAt } from "../../model/time.ts";
import { HOLD_REASON_ROWS, type HoldReason } from "../../policy/decision.ts";
import type { PresentedTimer } from "../../policy/timer.ts";
import type {
  Approval,
  HeldNode,
  NodeExplanation,
  NodeHistory,
  PolicyExplanation,
  PolicyStatus,
  RemediationStatus,
  RemediationView,
} from "../../remediation/status/views.ts";
import { iso, pick, seconds, secondsOf } from "./json-values.ts";
import { actionView, decisionView, episodeView, holdView, operatorCommandView } from "./row-views.ts";

/** Formats a timer as JSON. */
export const timerView = ({ state, since, trueMs, clearMs }: PresentedTimer) => ({
  state,
  since: isoAt(since),
  true_seconds: secondsOf(trueMs),
  clear_seconds: secondsOf(clearMs),
});

/** The section `remediation` of `GET /api/v1/status`. */
export const remediationStatusView = (status: RemediationStatus, approvals: number, heldNodes: number) => ({
  ...pick(status, "mode", "trust", "journal", "credentials", "limits"),
  paused: status.paused && {
    at: isoAt(status.paused.at),
    until: iso(status.paused.until),
    reason: status.paused.reason,
    operator: status.paused.operator ?? null,
  },
  breaker: status.breaker && {
    opened_at: isoAt(status.breaker.openedAt),
    nodes: status.breaker.nodes,
    causes: status.breaker.causes ?? null,
  },
  trusted: status.trust.length === 0,
  storm_until: iso(status.stormUntil),
  storm_cause: status.stormCause,
  round_failure: status.roundFailure,
  baseline_nodes: status.largestWalkNodes,
  approval_ttl_seconds: secondsOf(status.approvalTtlMs),
  in_flight: status.inFlight,
  awaiting_approval: approvals,
  held_nodes: heldNodes,
});

/** The steps of `GET /api/v1/policies`: all policies or one of them, in order of evaluation. */
export function* policiesView(remediation: RemediationView, name: string | null) {
  const policies = yield* remediation.policies();
  return policies.filter(({ policy }) => name === null || policy.spec.name === name).map(policyView);
}

/**
 * Returns the actions of `GET /api/v1/actions` in a state, "awaiting" or "approved", oldest first. They are in memory,
 * so they can be shown even if the journal can't be read.
 */
export function approvalsOf(remediation: RemediationView, state: string, query: JournalQuery): readonly Approval[] {
  const { node, policy, until = Number.POSITIVE_INFINITY, limit } = query;
  return remediation
    .approvals(state === "approved" ? "approved" : "awaiting")
    .filter((action) => (node ?? action.node) === action.node && (policy ?? action.policy) === action.policy)
    .filter(({ createdAt }) => createdAt <= until)
    .slice(0, limit);
}

/** The part of `GET /api/v1/nodes/ID` that explains why the daemon did or did not act on the node. */
export function explanationView(explanation: NodeExplanation, approvals: readonly Approval[], history: NodeHistory) {
  const approvalsById = new Map(approvals.map((action) => [action.id, action]));
  return {
    /** Whether the node is in the fleet now. */
    known: explanation.known,
    explained_at: isoAt(explanation.at),
    policies: explanation.policies.map(policyExplanationView),
    holds: explanation.holds.map(holdView),
    episodes: history.episodes.map(episodeView),
    actions: history.actions.map((action) => actionView(approvalsById.get(action.id) ?? action)),
    decisions: history.decisions.map(decisionView),
    orders: history.operatorCommands.map(operatorCommandView),
  };
}
export type ExplanationView = ReturnType<typeof explanationView>;

/** Returns how a hold for a reason ends, without the backticks of the docs. */
const holdEnd = (reason: HoldReason): string => HOLD_REASON_ROWS[reason].ends.replaceAll("`", "");

/**
 * The steps of `GET /api/v1/holds`: first nodes that a policy would treat, then the others; in each group, longest hold
 * first.
 */
export function* heldNodesView(remediation: RemediationView, query: JournalQuery) {
  const nodes = yield* remediation.heldNodes(query);
  return nodes.map(heldNodeView);
}

const heldNodeView = ({ ipAddress, heldMs, until, reasons, ...held }: HeldNode) => ({
  ...held,
  ip_address: ipAddress || null,
  held_seconds: secondsOf(heldMs),
  until: iso(until),
  reasons: reasons.map((reason) => ({ reason, ends: holdEnd(reason) })),
});
export type HeldNodeView = ReturnType<typeof heldNodeView>;

/** Returns whether an explanation says anything about its node. */
export const hasHistory = ({ known, holds, episodes, actions, decisions, orders }: ExplanationView): boolean =>
  known || [holds, episodes, actions, decisions, orders].some((rows) => rows.length > 0);

const policyExplanationView = ({
  forMs,
  timer,
  otherStatusAt,
  episode,
  steps,
  blockers,
  ...rest
}: PolicyExplanation) => ({
  ...rest,
  for_seconds: secondsOf(forMs),
  timer: timer && timerView(timer),
  other_status_at: iso(otherStatusAt),
  episode: episode && episodeView(episode),
  /** What each step of the policy does, in order. */
  steps: steps.map(stepName),
  /** `ends`: how the hold ends. */
  blockers: blockers.map((blocker) => ({ ...blocker, ends: holdEnd(blocker.reason) })),
});
export type PolicyExplanationView = ReturnType<typeof policyExplanationView>;

const policyView = ({ policy, hasFallenBack, ...status }: PolicyStatus) => ({
  name: policy.spec.name,
  ...status,
  fell_back: hasFallenBack,
  spec: specView(policy.spec),
});
export type PolicyView = ReturnType<typeof policyView>;

/** A policy with the keys of its file. The names of durations end in `_seconds`. */
const specView = ({ mode, match, when, windows, retry, ...spec }: PolicySpec) => ({
  mode,
  match,
  when,
  windows,
  for_seconds: secondsOf(spec.forMs),
  clear_for_seconds: secondsOf(spec.clearForMs),
  max_age_seconds: seconds(spec.maxAgeMs),
  steps: spec.steps.map(stepView),
  retry: {
    episodes: retry.episodes,
    every_seconds: secondsOf(retry.everyMs),
    forget_after_seconds: secondsOf(retry.forgetAfterMs),
  },
  blocked_by: spec.blockedBy.map(blockedByView),
});

function stepView(step: Step) {
  if (step.action === "notify") return step;
  const { verify, ...rest } = step;
  const verified = { verify: { within_seconds: secondsOf(verify.withinMs), expect: verify.expect } };
  if (rest.action !== "quarantine") return { ...rest, ...verified };
  const { durationMs, ...quarantine } = rest;
  return { ...quarantine, duration_seconds: secondsOf(durationMs), ...verified };
}
export type StepView = ReturnType<typeof stepView>;

/** Returns what a step does in one or two words. */
export const stepName = (step: Step): string =>
  step.action === "reboot" && step.force ? "forced reboot" : step.action;

const blockedByView = (blocked: ExternalBlocker) =>
  blocked.kind === "query" ? { query: blocked.query } : { alerts: blocked.matchers };
