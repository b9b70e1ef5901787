import { formatDuration } from "../base/duration.ts";
import type { Blocker, Decision, HoldReason } from "../model/remediation/decision.ts";
import { type Candidate, type Guard, type GuardRow, nextStep } from "./candidate.ts";
import { type GuardFacts, isDryRun } from "./facts.ts";
import {
  breakerGuard,
  correlatedGuard,
  disruptedDomainGuard,
  disruptedGuard,
  inFlightGuard,
  maxActionsGuard,
  minOnlineGuard,
  stormGuard,
} from "./guards/fleet-guards.ts";
import {
  backoffGuard,
  cooldownGuard,
  holdGuard,
  otherEpisodeGuard,
  protectedGuard,
  retryGuard,
  statusGuard,
} from "./guards/node-guards.ts";

/** What {@link GuardFacts.trustBlockers} may say. */
const TRUST_REASONS: readonly HoldReason[] = [
  ...(["warming_up", "inventory_incomplete", "inventory_shrunk", "inventory_unknown"] as const),
  ...(["last_seen_stale", "service_clock", "sight_cooldown"] as const),
];

const trustGuard: Guard = (_candidate, { trustBlockers: trust }) => trust;

const pauseGuard: Guard = (_candidate, { pauseDetail: paused }) =>
  paused === null ? [] : [{ reason: "paused", detail: paused }];

const journalGuard: Guard = (_candidate, { journalError: journal }) =>
  journal === null ? [] : [{ reason: "journal", detail: `the journal can't be written: ${journal}` }];

const credentialsGuard: Guard = (_candidate, { credentialsError: credentials }) =>
  credentials === null ? [] : [{ reason: "credentials", detail: credentials }];

const verdictGuard: Guard = ({ evaluation }) => {
  if (evaluation.verdict !== "unknown") return [];
  const detail = evaluation.unknowns.map(({ field, why }) => `${field ?? "the expression"}: ${why}`).join(", ");
  return [{ reason: "verdict_unknown", detail }];
};

const policyBlockersGuard: Guard = ({ active }, facts) => facts.policyBlockers(active.policy);

const approvalGuard: Guard = ({ active, episode, approved }, { records }) => {
  if (active.mode !== "approve" || approved) return [];
  const actions = episode === null ? [] : records.actionsOf(episode.id).filter(({ step }) => step === episode.step);
  const rejected = actions.find(({ state }) => state === "rejected");
  if (rejected !== undefined) return [{ reason: "rejected", detail: rejected.detail ?? `${rejected.id} was rejected` }];
  const waiting = actions.find(({ state }) => state === "awaiting");
  const lapsed = actions.findLast(({ state }) => state === "lapsed");
  const before = lapsed === undefined ? "" : `; ${lapsed.id} lapsed: ${lapsed.detail}`;
  const detail =
    waiting === undefined ? "approval by an operator is required" : `${waiting.id} is waiting for approval`;
  return [{ reason: "approval", detail: `${detail}${before}` }];
};

/** Under a changed policy one node at a time is tried until an action of it was verified. */
const canaryGuard: Guard = ({ active, node }, facts) => {
  if (!facts.safety.canary || active.proven || isDryRun(active)) return [];
  const canary = facts.canaryEpisode(active);
  if (canary === null || canary.node === node.id) return [];
  const end =
    canary.state === "suspended"
      ? `it left the list after our action: the hold ends when it is back, or ${formatDuration(active.policy.rule.retry.forgetAfterMs)} after it left`
      : "the hold ends when an action on it is verified, or when it can't proceed";
  const detail = `the policy is new or changed, and ${canary.node} (${canary.id}) is the canary; ${end}`;
  return [{ reason: "canary", detail }];
};

/** A policy whose text was changed in mid-episode may have fewer steps than were taken. */
const stepsExhaustedGuard: Guard = (candidate) => {
  if (nextStep(candidate) !== null) return [];
  const detail = `the policy has ${candidate.active.policy.rule.steps.length} steps, and the episode has used them all: given up`;
  return [{ reason: "retry_limit", detail }];
};

const anyStep = { appliesToNotify: true } as const;
const actionStepsOnly = { appliesToNotify: false } as const;

/** Every guard. All are evaluated, and all that they say is reported. */
export const GUARDS: readonly GuardRow[] = [
  { reasons: ["paused"], check: pauseGuard, ...actionStepsOnly },
  { reasons: ["journal"], check: journalGuard, ...anyStep },
  { reasons: ["credentials"], check: credentialsGuard, ...actionStepsOnly },
  { reasons: TRUST_REASONS, check: trustGuard, ...anyStep },
  { reasons: ["verdict_unknown"], check: verdictGuard, ...anyStep },
  { reasons: ["window", "blocked_by"], check: policyBlockersGuard, ...actionStepsOnly },
  { reasons: ["approval", "rejected"], check: approvalGuard, ...actionStepsOnly },
  { reasons: ["canary"], check: canaryGuard, ...actionStepsOnly },
  { reasons: ["retry_limit"], check: stepsExhaustedGuard, ...actionStepsOnly },
  { reasons: ["protected"], check: protectedGuard, ...actionStepsOnly },
  { reasons: ["held", "vetoed", "ownership"], check: holdGuard, ...actionStepsOnly },
  { reasons: ["status", "ownership"], check: statusGuard, ...actionStepsOnly },
  { reasons: ["other_episode"], check: otherEpisodeGuard, ...anyStep },
  { reasons: ["cooldown"], check: cooldownGuard, ...anyStep },
  { reasons: ["retry_limit", "retry_wait"], check: retryGuard, ...anyStep },
  { reasons: ["backoff"], check: backoffGuard, ...anyStep },
  { reasons: ["storm", "storm_cooldown"], check: stormGuard, ...actionStepsOnly },
  { reasons: ["correlated"], check: correlatedGuard, ...actionStepsOnly },
  { reasons: ["breaker"], check: breakerGuard, ...actionStepsOnly },
  { reasons: ["in_flight"], check: inFlightGuard, ...actionStepsOnly },
  { reasons: ["disrupted"], check: disruptedGuard, ...actionStepsOnly },
  { reasons: ["disrupted_domain"], check: disruptedDomainGuard, ...actionStepsOnly },
  { reasons: ["min_online"], check: minOnlineGuard, ...actionStepsOnly },
  { reasons: ["max_actions"], check: maxActionsGuard, ...actionStepsOnly },
];

/** Returns every blocker of the candidate's next step. */
export function findBlockers(candidate: Candidate, facts: GuardFacts): readonly Blocker[] {
  const isNotice = nextStep(candidate)?.action === "notify";
  return GUARDS.filter(({ appliesToNotify: holdsNotices }) => holdsNotices || !isNotice).flatMap(({ check }) =>
    check(candidate, facts),
  );
}

/** Reasons that hold every node of a policy alike, and those that an approval ends. */
const POLICY_WIDE_REASONS: ReadonlySet<HoldReason> = new Set<HoldReason>([
  "paused",
  "journal",
  "credentials",
  "warming_up",
  "inventory_incomplete",
  "inventory_shrunk",
  "inventory_unknown",
  "last_seen_stale",
  "service_clock",
  "sight_cooldown",
  "window",
  "blocked_by",
  "approval",
  "storm",
  "storm_cooldown",
  "breaker",
  "in_flight",
  "disrupted",
  "max_actions",
]);

/** Whether a canary can proceed: its next step is due, and nothing holds it that doesn't hold every node of its policy. */
export const canProceed = (candidate: Candidate, facts: GuardFacts): boolean =>
  isDue(candidate) &&
  findBlockers(candidate, { ...facts, canaryEpisode: () => null }).every(({ reason }) =>
    POLICY_WIDE_REASONS.has(reason),
  );

/** Whether there is anything to act on: it is ill for as long as the policy asks, and no step of it is under way. */
const isDue = ({ evaluation, timer, episode }: Candidate): boolean =>
  evaluation.verdict === "true" && timer.state === "firing" && (episode === null || episode.state === "firing");

/** Decides on a candidate whose timer fires: act if there are no blockers, otherwise hold. */
export function decide(candidate: Candidate, facts: GuardFacts): Decision {
  const { active, node, episode, evaluation } = candidate;
  const blockers = findBlockers(candidate, facts);
  return {
    at: facts.now,
    policy: active.policy.rule.name,
    node: node.id,
    episode: episode?.id ?? null,
    step: episode?.step ?? 0,
    mode: active.mode,
    verdict: blockers.length === 0 && isDue(candidate) ? "act" : "hold",
    blockers,
    evidence: { fields: evaluation.fields(), observedAt: candidate.observedAt },
  };
}

/**
 * Reasons for which no episode begins; all others hold the one that has begun. What ails many nodes at once is one
 * trouble, and told as one: it is not theirs one by one.
 */
const EPISODE_PREVENTING_REASONS: ReadonlySet<string> = new Set<HoldReason>([
  "other_episode",
  "cooldown",
  "retry_limit",
  "retry_wait",
  "storm",
  "correlated",
]);

/** Whether an episode may begin, by what a decision said. */
export const mayBeginEpisode = ({ blockers }: Decision): boolean =>
  blockers.every(({ reason }) => !EPISODE_PREVENTING_REASONS.has(reason));
