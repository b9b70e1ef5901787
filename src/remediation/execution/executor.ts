import { actionCall } from "../../api-client/endpoints.ts";
import type { ApiError } from "../../api-client/errors.ts";
import type { PostResult } from "../../api-client/post-result.ts";
import {
  DAY_MS,
  type DurationMs,
  formatDuration,
  formatSecondsLeft,
  MINUTE_MS,
  SECOND_MS,
} from "../../base/duration.ts";
import { readNodeDetail } from "../../collectors/detail-collector.ts";
import type { NodeId, NodeStatus } from "../../model/node.ts";
import type { Action, Episode } from "../../model/remediation/episode.ts";
import { advanceStep, endSteps, recordRateLimited, recordSent, recordUnsent } from "../../policy/episodes/episode.ts";
import { evaluateExpression } from "../../policy/evaluation.ts";
import type { Candidate } from "../../policy/guards/guard-types.ts";
import type { EpisodeContext, ServiceContext } from "../context.ts";
import { obsoleteReason } from "../evaluation/action-planner.ts";
import { findCandidate } from "../evaluation/decision-input.ts";
import { actionChange, commitTransition, nodeText, notifyOfEpisode } from "./episode-transitions.ts";
import { outdatedReadProblem } from "./node-reports.ts";

type ExecutorDeps = EpisodeContext & ServiceContext;

/** Signals that end execution. After `noNewSteps` no action may begin; `abortPost` aborts a POST that is under way. */
export interface ExecutionSignals {
  readonly noNewSteps: AbortSignal;
  readonly abortPost: AbortSignal;
}

/** An action is sent within this time after its node was read. */
const READ_AGE_MS_MAX: DurationMs = 30 * SECOND_MS;
/** Detail of an action that was withdrawn because this controller stops. */
const CANCELED_DETAIL = "the daemon stopped, or reloaded its configuration, before it was sent";
/** Longest quarantine that a policy can request. A reply that states a longer one is ignored. */
const QUARANTINE_MINUTES_MAX = (30 * DAY_MS) / MINUTE_MS;

/**
 * Sends an action that was decided on, at most once. `precondition` returns why it must not be sent according to what
 * is known at that moment, or null if it may be sent.
 *
 *     journal the intent ─▶ query `blocked_by` ─▶ read the node ─▶ wait for a permit ─▶ check the precondition
 *         ─▶ journal `posting` ─▶ check the precondition again ─▶ POST
 *
 * `posting` takes effect in memory only with the POST, so the second check sees the action as the first one did.
 * Nothing runs between that check and the POST. Until the POST the action can be withdrawn. After it nothing is sent
 * again. If the outcome is unknown, the action is in doubt, and observation settles it.
 */
export async function executeAction(
  context: ExecutorDeps,
  intent: Action,
  precondition: () => string | null,
  { noNewSteps, abortPost }: ExecutionSignals,
): Promise<void> {
  const { remediationState, clock, externalBlockerCache, observed } = context;
  // An operator may have withdrawn the approval while this commit waited for another one.
  const isApprovalGone = () =>
    intent.approvedAt !== undefined && remediationState.records.action(intent.id)?.state !== "approved";
  if (!(await remediationState.commit(() => (isApprovalGone() ? null : [actionChange(intent)])))) return;
  await externalBlockerCache.refresh(context.policies.find(intent.policy)!, noNewSteps, 0);
  const slotBeforeRead = observed.slotOf(intent.node);
  const statusBeforeRead = slotBeforeRead === null ? undefined : observed.statusAt(slotBeforeRead);
  const problem = await readNodeNow(context, intent, noNewSteps);
  if (problem !== null) {
    withdrawAction(context, intent, problem, !noNewSteps.aborted);
    return;
  }
  const [readAt, readAtEpochMs] = [clock.monotonic(), clock.now()];
  const action: Action = { ...intent, ...stateBeforeAction(context, intent), state: "posting" };
  const findBlocker = (delayedBy: "limits" | "journal") => {
    const reason = precondition();
    if (reason !== null) return { kind: "blocked", message: reason } as const;
    // The monotonic clock stands still while the machine is suspended.
    const readAgeMs = Math.max(clock.monotonic() - readAt, clock.now() - readAtEpochMs);
    const message = `the ${delayedBy}, or a suspension of the machine, delayed the action until ${formatSecondsLeft(readAgeMs)} after the read of its node; the maximum is ${formatDuration(READ_AGE_MS_MAX)}`;
    return readAgeMs > READ_AGE_MS_MAX ? ({ kind: "not_sent", message } as const) : null;
  };
  const result = await context.client.post(actionCall(intent.node, intent.request), noNewSteps, async (send) => {
    const blocker = findBlocker("limits");
    if (blocker !== null) return blocker;
    const posting = () => [actionChange({ ...action, sentAt: remediationState.now() })];
    const isIntended = () => remediationState.records.action(intent.id)?.state === "intended";
    const adoptPosting = await remediationState.prepare(posting(), isIntended);
    if (noNewSteps.aborted) return { kind: "canceled" };
    // Operators, a reload or newer data may have intervened before `posting` was journaled or while it was.
    const newBlocker = findBlocker("journal");
    if (newBlocker !== null) return newBlocker;
    if (adoptPosting === null) return { kind: "not_sent", message: "the journal can't be written" };
    // What was observed while it was journaled is from before the POST.
    adoptPosting(posting());
    return send(abortPost);
  });
  if (result.kind === "blocked")
    withdrawAction(context, intent, result.message, hasReadChanged(context, intent, statusBeforeRead));
  else recordOutcome(context, { ...action, sentAt: remediationState.records.action(intent.id)!.sentAt }, result);
}

/** Records an action of a dry run, which was decided on and is not sent. */
export function recordDryRun(context: ExecutorDeps, intent: Action): void {
  const now = context.remediationState.now();
  const episode = context.remediationState.records.episode(intent.episode)!;
  const action: Action = {
    ...intent,
    ...stateBeforeAction(context, intent),
    state: "sent",
    sentAt: now,
    outcome: "dry_run",
  };
  const { policy, node, request } = action;
  context.metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome: "dry_run" });
  context.log.info({ policy, node, kind: request.kind, episode: episode.id }, "dry run: action not sent");
  commitTransition(context, episode, recordSent(episode, action, null, now), [actionChange(action)]);
}

/** Sends the notification of a notify step, and advances the episode. */
export function sendNotifyStep(context: ExecutorDeps, { active, episode: open }: Candidate): void {
  const { spec } = active.policy;
  const episode = open!;
  const step = spec.steps[episode.step];
  if (step?.action !== "notify") throw new Error(`step ${episode.step} of ${episode.id} is not a notify step`);
  const summary = `${nodeText(context, episode.node)} is unhealthy under the policy ${spec.name} (${episode.id}), and has reached step ${episode.step + 1}, a notify step`;
  if (!episode.dryRun)
    notifyOfEpisode(context, episode, { kind: "step", severity: "critical", summary }, step.receiver);
  commitTransition(context, episode, advanceStep(episode, spec, context.remediationState.now()));
}

/**
 * Reads the node, so that the precondition is checked on fresh data. Returns why that failed, or null if it was read.
 */
async function readNodeNow(context: ExecutorDeps, { node }: Action, signal: AbortSignal): Promise<string | null> {
  const error = await readNode(context, node, signal);
  if (error === null) {
    context.observed.replaceFleet(context.inventory.currentFleet());
    return outdatedReadProblem(context, context.observed.slotOf(node)!);
  }
  const isForbidden = error.kind === "forbidden";
  if (isForbidden || error.kind === "unauthorized") context.apiKey.recordRejected(node, error.message, isForbidden);
  return `the node could not be read: ${error.message}`;
}

/**
 * Returns whether the read before an action is why it was withdrawn: it shows another status, or that the condition does
 * not hold. The list may contradict it again with each walk, so the next attempt waits.
 */
function hasReadChanged(context: ExecutorDeps, { policy, node }: Action, statusBeforeRead?: NodeStatus): boolean {
  const candidate = findCandidate(context, policy, node);
  return candidate !== null && (candidate.evaluation.verdict !== "true" || candidate.node.status !== statusBeforeRead);
}

/** Returns the node's status and uptime before the action, and whether the step's `expect` holds already. */
function stateBeforeAction(
  { observed, policies, clock }: ExecutorDeps,
  action: Action,
): Pick<Action, "uptimeHoursBefore" | "statusBefore" | "expectedBefore"> {
  const slot = observed.slotOf(action.node);
  if (slot === null) return { uptimeHoursBefore: null };
  const before = { uptimeHoursBefore: observed.uptimeHoursAt(slot), statusBefore: observed.statusAt(slot) };
  const { policy, expect } = policies.sentUnder(action)!;
  const input = observed.input(policy.spec, clock.monotonic());
  const holds = expect !== null && evaluateExpression(expect, slot, input).verdict === "true";
  // An earlier attempt at the same action may have found something else.
  return { ...before, ...((holds || action.expectedBefore !== undefined) && { expectedBefore: holds }) };
}

/** Returns whether an action that was not executed is still approved: an operator approved it, and its step is still due. */
const isStillApproved = (context: ExecutorDeps, action: Action, episode: Episode | null): boolean =>
  action.approvedAt !== undefined && obsoleteReason(context, action, episode) === null;

/** Returns the approved action that replaces one whose POST was answered but not executed, which stays on record. */
function approvedAgain({ remediationState }: ExecutorDeps, action: Action, problem: string): Action {
  const detail = `${action.id} was not executed: ${problem}`;
  const createdAt = remediationState.now();
  return { ...action, id: remediationState.records.nextId("act"), state: "approved", createdAt, sentAt: null, detail };
}

/** Withdraws an action that was not sent. If it is still approved, it remains so. */
function withdrawAction(context: ExecutorDeps, action: Action, detail: string, isFailure: boolean): void {
  const now = context.remediationState.now();
  const current = context.remediationState.records.episode(action.episode);
  const ended = isStillApproved(context, action, current)
    ? ({ state: "approved" } as const)
    : ({ state: "withdrawn", endedAt: now } as const);
  const row: Action = { ...action, ...ended, sentAt: null, detail };
  context.log.info({ action: action.id, node: action.node, detail }, "action withdrawn before it was sent");
  if (isFailure && current?.closedAt === null)
    commitTransition(context, current, recordUnsent(current, now), [actionChange(row)]);
  else context.remediationState.record([actionChange(row)]);
}

/**
 * Records the outcome of a POST. `action.sentAt` counts against max_actions unless the POST did not reach the service.
 */
function recordOutcome(context: ExecutorDeps, action: Action, result: PostResult): void {
  const now = context.remediationState.now();
  const episode = context.remediationState.records.episode(action.episode)!;
  const { policy, request, node } = action;
  const { spec } = context.policies.find(policy)!;
  const count = (outcome: "refused" | "failed" | "in_doubt") =>
    context.metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome });
  const commit = (next: Episode, changed: Partial<Action>) =>
    commitTransition(context, episode, next, [actionChange({ ...action, ...changed })]);
  const fields = { action: action.id, policy, node, kind: request.kind };
  switch (result.kind) {
    case "done": {
      context.apiKey.recordAccepted(node);
      const { message, durationMinutes } = result.reply;
      const isPlausible = (durationMinutes ?? 0) > 0 && durationMinutes! <= QUARANTINE_MINUTES_MAX;
      context.log.info({ ...fields, message }, "action sent");
      const next = recordSent(episode, action, isPlausible ? durationMinutes : null, now);
      commit(next, { state: "sent", detail: message });
      return;
    }
    case "canceled":
      withdrawAction(context, action, CANCELED_DETAIL, false);
      return;
    case "in_doubt":
      count("in_doubt");
      context.log.warn({ ...fields, problem: result.message }, "action in doubt; observation will settle it");
      commit(recordSent(episode, action, null, now), { state: "sent", inDoubt: true, detail: result.message });
      return;
    case "refused": {
      context.apiKey.recordAccepted(node);
      count("refused");
      context.log.warn({ ...fields, problem: result.message }, "action refused by the service; episode given up");
      const next = endSteps({ ...episode, acted: episode.acted + 1 }, spec, now);
      commit(next, { state: "ended", endedAt: now, outcome: "refused", detail: result.message });
      return;
    }
    case "credentials":
    case "rate_limited":
    case "not_sent": {
      const { message: detail } = result;
      // While the action waited for its permit, an operator may have accepted the loss of the node.
      if (episode.closedAt !== null) {
        withdrawAction(context, action, detail, false);
        return;
      }
      count("failed");
      const next =
        result.kind === "rate_limited"
          ? recordRateLimited(episode, result.retryAfterMs, spec, now)
          : recordUnsent(episode, now);
      const isApproved = isStillApproved(context, action, next);
      const ended: Action = { ...action, state: "ended", endedAt: now, outcome: "failed", detail };
      if (result.kind === "not_sent") {
        context.log.warn({ ...fields, problem: detail }, "action not sent");
        commit(next, { ...(isApproved ? { state: "approved", detail } : ended), sentAt: null });
        return;
      }
      if (result.kind === "credentials") context.apiKey.recordRejected(node, detail, result.status === 403);
      const rows = isApproved ? [ended, approvedAgain(context, action, detail)] : [ended];
      commitTransition(context, episode, next, rows.map(actionChange));
      if (result.kind === "rate_limited") reportRateLimited(context, next, ended);
      return;
    }
    default:
      result satisfies never;
  }
}

/** Logs that a step is sent again after a 429 or, after too many of them, notifies that its episode is given up. */
function reportRateLimited(context: ExecutorDeps, episode: Episode, { id, policy, node, detail }: Action): void {
  const fields = { action: id, policy, node, attempts: episode.limited, problem: detail };
  if (episode.state === "firing") {
    context.log.warn(fields, "action rate limited; it is sent again later");
    return;
  }
  context.log.warn(fields, "action rate limited too often; episode given up");
  const summary = `${nodeText(context, node)}: the service answered 429 to ${episode.limited} attempts of ${policy} (${episode.id}); the episode is given up`;
  notifyOfEpisode(context, episode, { kind: "given_up", severity: "critical", summary });
}

/**
 * Reads one node into the inventory, with the priority of an action. Returns why that failed, or null if it was read.
 */
export async function readNode(
  context: Pick<ServiceContext, "client" | "clock" | "detailReporter" | "inventory">,
  id: NodeId,
  signal: AbortSignal,
): Promise<ApiError | null> {
  const { detailReporter: reporter, inventory } = context;
  const error = await readNodeDetail({ ...context, reporter }, { id, lane: "action" }, signal);
  // If details are not collected, no run of a collector logs the problems.
  reporter.logProblems();
  if (error === null && !inventory.has(id)) return { kind: "not_found", message: "it is not listed any more" };
  return error;
}
