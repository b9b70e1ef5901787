import { decodeActionReply, decodeNodeDetail } from "../../api-client/decoding/records.ts";
import { actionCall, readNodeCall } from "../../api-client/endpoints.ts";
import type { PostResult } from "../../api-client/post-result.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { NODE_STATUSES, type NodeId } from "../../model/node.ts";
import type { Step } from "../../model/policy/policy.ts";
import type { Decision } from "../../model/remediation/decision.ts";
import type { Action, ActionRequest, Episode } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";
import { type Candidate, nextStep } from "../../policy/candidate.ts";
import { recordRateLimited, recordRefused, recordSent, recordUnsent } from "../../policy/episodes/episode.ts";
import { isDryRun } from "../../policy/facts.ts";
import { type RemediationContext, slotOfNode } from "../context.ts";
import { findApprovedAction } from "../evaluation/candidates.ts";
import type { ExternalBlockerCache } from "../evaluation/external-blockers.ts";
import { recordKeyAccepted, recordKeyRejected } from "./api-key-rejection.ts";
import { actionChange, commitTransition, notifyOfEpisode } from "./episode-transitions.ts";

/** Decides again on a candidate by what is known now; null: it is gone. */
export type Recheck = (candidate: Candidate) => { readonly candidate: Candidate; readonly decision: Decision } | null;

/** `stopping`: nothing new is to begin; `cutting`: what is under way is to end. */
export interface ExecutionSignals {
  readonly noNewSteps: AbortSignal;
  readonly abort: AbortSignal;
}

const TEXT_CHARACTERS_MAX = 500;
/** A node is acted on within this after it was read afresh. */
const READ_TIMEOUT_MS: DurationMs = 30 * SECOND_MS;

/**
 * Takes the next step of an episode, once: the intent is written down, the node is read afresh and decided on again,
 * that it is being sent is written down, and then it is sent. Whatever comes of it is written down; nothing is sent again.
 */
export async function executeStep(
  context: RemediationContext,
  externalBlockers: ExternalBlockerCache,
  decided: Candidate,
  recheck: Recheck,
  { noNewSteps: stopping, abort: cutting }: ExecutionSignals,
): Promise<void> {
  const { remediationState } = context;
  const intent = intentOf(context, decided);
  if (!remediationState.commit([actionChange(intent)])) return;
  await externalBlockers.refresh(decided.active.policy, stopping);
  const problem = await readNodeNow(context, intent, stopping);
  if (problem !== null) {
    withdrawAction(context, intent, decided.episode!, problem, !stopping.aborted);
    return;
  }
  const blocker = findBlocker(recheck(decided));
  if (blocker !== null) {
    withdrawAction(context, intent, decided.episode!, blocker, false);
    return;
  }
  const readAt = context.clock.monotonic();
  const posting: Action = { ...intent, ...stateBeforeAction(context, intent.node), state: "posting" };
  let sent = posting;
  let late: string | null = null;
  const withdrawIntent = new AbortController();
  const abandonPost = () => withdrawIntent.abort();
  // Until it goes out it may be dropped at once; from then on it is given its grace.
  stopping.addEventListener("abort", abandonPost);
  cutting.addEventListener("abort", abandonPost);
  if (stopping.aborted) abandonPost();
  const result = await context.client.post(actionCall(intent.node, intent.request), withdrawIntent.signal, () => {
    stopping.removeEventListener("abort", abandonPost);
    // It may have waited long for leave to be sent, and much may have happened meanwhile.
    if (context.clock.monotonic() - readAt > READ_TIMEOUT_MS) throw new Error("the node was read too long ago");
    late = findBlocker(recheck(decided));
    if (late !== null) throw new Error(late);
    sent = { ...posting, sentAt: remediationState.now() };
    // Thrown before anything goes out: what can't be written down is not done.
    if (!remediationState.commit([actionChange(sent)])) throw new Error("the journal can't be written");
  });
  stopping.removeEventListener("abort", abandonPost);
  cutting.removeEventListener("abort", abandonPost);
  if (late !== null) withdrawAction(context, intent, decided.episode!, late, false);
  else if (result.kind === "not_sent" && withdrawIntent.signal.aborted)
    withdrawAction(context, sent, decided.episode!, "the daemon stopped before it was sent", false);
  else recordOutcome(context, sent, result);
}

/** Why what was decided is not to be done after all; null: it is. */
function findBlocker(again: ReturnType<Recheck>): string | null {
  if (again === null) return "the node is gone";
  const { verdict, blockers } = again.decision;
  if (verdict === "act") return null;
  return blockers.map(({ reason, detail }) => `${reason}: ${detail}`).join("; ") || "it is not unhealthy any more";
}

/** A dry run of a step: everything but the sending. */
export function recordDryRun(context: RemediationContext, { active, episode, ...candidate }: Candidate): void {
  const now = context.remediationState.now();
  const intent = intentOf(context, { active, episode, ...candidate });
  const action: Action = {
    ...intent,
    ...stateBeforeAction(context, intent.node),
    ...{ state: "sent", sentAt: now, outcome: "dry_run" },
  };
  const { policy, request } = action;
  context.metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome: "dry_run" });
  context.log.info(
    { policy, node: action.node, kind: request.kind, episode: episode!.id },
    "would act, but for dry_run",
  );
  commitTransition(context, episode, recordSent(episode!, action, null, now), [actionChange(action)]);
}

/** Queues the step for a person to approve. */
export function recordApprovalRequest(context: RemediationContext, candidate: Candidate): Action {
  return { ...intentOf(context, candidate), state: "awaiting" };
}

function intentOf(context: RemediationContext, candidate: Candidate): Action {
  const { active, node, evaluation, observedAt } = candidate;
  const episode = candidate.episode!;
  const approved = findApprovedAction(context, episode.id, episode.step);
  if (approved !== null) return { ...approved, state: "intended" };
  const step = nextStep(candidate)!;
  return {
    id: context.remediationState.records.nextId("act"),
    episode: episode.id,
    policy: active.policy.rule.name,
    node: node.id,
    country: node.country,
    region: node.region,
    step: episode.step,
    shadow: isDryRun(active),
    fingerprint: active.policy.fingerprint,
    request: actionRequestOf(step, episode, active.policy.rule.when),
    state: "intended",
    evidence: { fields: evaluation.fields(), observedAt },
    createdAt: context.remediationState.now(),
    sentAt: null,
    endedAt: null,
    outcome: null,
    inDoubt: false,
    detail: null,
    uptimeHoursBefore: null,
    rebootingSeen: false,
    proof: null,
  };
}

function actionRequestOf(step: Step, episode: Episode, when: string): ActionRequest {
  switch (step.action) {
    case "disconnect":
      return { kind: "disconnect" };
    case "reboot":
      return { kind: "reboot", force: step.force };
    case "quarantine": {
      const values: Readonly<Record<string, string>> = {
        policy: episode.policy,
        when,
        episode: episode.id,
        node: episode.node,
      };
      const reason = step.reason.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name: string) => values[name] ?? "");
      return {
        kind: "quarantine",
        reason: reason.slice(0, TEXT_CHARACTERS_MAX),
        durationMinutes: Math.round(step.durationMs / MINUTE_MS),
      };
    }
    case "notify":
      throw new Error("a notice is no action");
    default:
      return step satisfies never;
  }
}

/** Reads the node itself, past every list; null: done, else why not. */
async function readNodeNow(context: RemediationContext, { node }: Action, signal: AbortSignal): Promise<string | null> {
  const { client, clock, inventory } = context;
  const answer = await client.get(readNodeCall(node), "action", signal);
  if (!answer.ok) {
    const { kind, message } = answer.error;
    if (kind === "unauthorized" || kind === "forbidden") recordKeyRejected(context, message);
    return `the node could not be read: ${message}`;
  }
  const detail = decodeNodeDetail(answer.value.json, () => {});
  if (detail === null || detail.id !== node) return "the node could not be read: the answer is not the node's";
  if (context.view === null || !inventory.has(node)) return "the node is gone";
  inventory.recordDetail(detail, answer.value.at, clock.now());
  context.view = { ...context.view, snapshot: { ...context.view.snapshot, fleet: inventory.currentFleet() } };
  return null;
}

/** How the node stands before something is done to it. */
function stateBeforeAction(
  context: RemediationContext,
  node: NodeId,
): Pick<Action, "uptimeHoursBefore" | "statusBefore"> {
  const slot = slotOfNode(context, node);
  if (slot === null) return { uptimeHoursBefore: null };
  const { uptimeHours, status } = context.view!.snapshot.fleet;
  const uptime = uptimeHours[slot]!;
  return { uptimeHoursBefore: Number.isNaN(uptime) ? null : uptime, statusBefore: NODE_STATUSES[status[slot]!]! };
}

function withdrawAction(
  context: RemediationContext,
  action: Action,
  episode: Episode,
  detail: string,
  isFailure: boolean,
): void {
  const now = context.remediationState.now();
  const row: Action = { ...action, state: "withdrawn", sentAt: null, endedAt: now, detail };
  context.log.info({ action: action.id, node: action.node, detail }, "an action is withdrawn before it was sent");
  const current = context.remediationState.records.episode(episode.id);
  if (isFailure && current?.closedAt === null)
    commitTransition(context, current, recordUnsent(current, now), [actionChange(row)]);
  else context.remediationState.record([actionChange(row)]);
}

/** Writes down what came of a sending, by what the service answered. */
function recordOutcome(context: RemediationContext, action: Action, result: PostResult): void {
  const now = context.remediationState.now();
  const episode = context.remediationState.records.episode(action.episode)!;
  const { policy, request, node } = action;
  const count = (outcome: "refused" | "failed" | "in_doubt") =>
    context.metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome });
  const log = { action: action.id, policy, node, kind: request.kind };
  /** `sentAt`: when it reached the service, which counts against max_actions; null: it did not. */
  const failed = (detail: string, sentAt: EpochMs | null): Action =>
    ({ ...action, state: "ended", sentAt, endedAt: now, outcome: "failed", detail }) satisfies Action;
  if (result.kind === "done" || result.kind === "refused") recordKeyAccepted(context);
  switch (result.kind) {
    case "done": {
      const reply = decodeActionReply(result.json);
      const row: Action = { ...action, state: "sent", detail: reply.message };
      context.log.info({ ...log, message: reply.message }, "an action was sent");
      const minutes = (reply.durationMinutes ?? 0) > 0 ? reply.durationMinutes : null;
      commitTransition(context, episode, recordSent(episode, row, minutes, now), [actionChange(row)]);
      return;
    }
    case "in_doubt": {
      count("in_doubt");
      const row: Action = { ...action, state: "sent", inDoubt: true, detail: result.message };
      context.log.warn({ ...log, problem: result.message }, "an action is in doubt; what is seen will settle it");
      commitTransition(context, episode, recordSent(episode, row, null, now), [actionChange(row)]);
      return;
    }
    case "refused": {
      count("refused");
      const row: Action = { ...action, state: "ended", endedAt: now, outcome: "refused", detail: result.message };
      context.log.warn({ ...log, problem: result.message }, "the service refused an action; its episode is given up");
      const rule = context.policies.find((each) => each.rule.name === policy)!.rule;
      const attempted = { ...episode, acted: episode.acted + 1 };
      commitTransition(context, episode, recordRefused(attempted, rule, now), [actionChange(row)]);
      return;
    }
    case "credentials":
      recordKeyRejected(context, result.message);
      count("failed");
      commitTransition(context, episode, recordUnsent(episode, now), [
        actionChange(failed(result.message, action.sentAt)),
      ]);
      return;
    case "limited":
      count("failed");
      recordRateLimitedAction(context, episode, failed(result.message, action.sentAt), result.retryAfterMs);
      return;
    case "not_sent":
      count("failed");
      context.log.warn({ ...log, problem: result.message }, "an action could not be sent");
      commitTransition(context, episode, recordUnsent(episode, now), [actionChange(failed(result.message, null))]);
      return;
    default:
      result satisfies never;
  }
}

/** After a 429: the same step is tried again after a wait, and its episode is given up after too many of them. */
function recordRateLimitedAction(
  context: RemediationContext,
  episode: Episode,
  action: Action,
  retryAfterMs: DurationMs | null,
): void {
  const now = context.remediationState.now();
  const recordAfter = recordRateLimited(episode, retryAfterMs, now);
  commitTransition(context, episode, recordAfter, [actionChange(action)]);
  const log = { action: action.id, policy: action.policy, node: action.node, attempts: recordAfter.limited };
  if (recordAfter.closedAt === null) {
    context.log.warn({ ...log, problem: action.detail }, "an action was rate limited; it is sent again later");
    return;
  }
  context.log.warn({ ...log, problem: action.detail }, "an action was rate limited too often; its episode is given up");
  const summary = `${action.node}: the service answered 429 to ${recordAfter.limited} attempts of ${action.policy} (${episode.id}); it is given up for now`;
  notifyOfEpisode(context, recordAfter, { kind: "given_up", severity: "critical", summary });
}
