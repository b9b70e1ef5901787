import { decodeActionReply, decodeNodeDetail } from "../../api-client/decoding/records.ts";
import { actionCall, readNodeCall } from "../../api-client/endpoints.ts";
import type { PostResult } from "../../api-client/post-result.ts";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import { NODE_STATUSES, type NodeId } from "../../model/node.ts";
import type { Action, Episode } from "../../model/remediation/episode.ts";
import type { EpochMs } from "../../model/time.ts";
import {
  advanceStep,
  recordRateLimited,
  recordRefused,
  recordSent,
  recordUnsent,
} from "../../policy/episodes/episode.ts";
import type { Candidate } from "../../policy/guards/guard.ts";
import type { RemediationContext } from "../context.ts";
import type { ExternalBlockerCache } from "../evaluation/external-blockers.ts";
import type { TransitionDeps } from "./episode-transitions.ts";
import { actionChange, commitTransition, notifyOfEpisode } from "./episode-transitions.ts";

type ExecutorDeps = TransitionDeps & Pick<RemediationContext, "apiKey" | "client" | "clock" | "inventory" | "observed">;

/** Returns why an action must not be sent, by what is known at this moment; null: it may be sent. */
export type Precondition = (action: Action) => string | null;

/** `noNewSteps`: no action may begin any more; `abort`: a POST that is under way is given up. */
export interface ExecutionSignals {
  readonly noNewSteps: AbortSignal;
  readonly abort: AbortSignal;
}

/** A node is acted on within this after it was read. */
const READ_TIMEOUT_MS: DurationMs = 30 * SECOND_MS;

/**
 * Sends an action that was decided on, at most once:
 *
 *     journal the intent ─▶ read the node ─▶ wait for a permit ─▶ check the precondition ─▶ journal `posting` ─▶ POST
 *
 * Until the POST the action can be withdrawn. After it nothing is sent again: an unknown outcome is in doubt, and
 * observation settles it.
 */
export async function executeAction(
  context: ExecutorDeps,
  externalBlockers: ExternalBlockerCache,
  intent: Action,
  precondition: Precondition,
  { noNewSteps, abort }: ExecutionSignals,
): Promise<void> {
  const { remediationState, clock } = context;
  if (!remediationState.commit([actionChange(intent)])) return;
  await externalBlockers.refresh(context.policies.find(intent.policy)!, noNewSteps);
  const problem = await readNodeNow(context, intent, noNewSteps);
  if (problem !== null) {
    withdrawAction(context, intent, problem, !noNewSteps.aborted);
    return;
  }
  const readAt = clock.monotonic();
  let action: Action = { ...intent, ...stateBeforeAction(context, intent.node), state: "posting" };
  let blocker: string | null = null;
  const drop = new AbortController();
  const abandonPost = () => drop.abort();
  // Until it is sent, an action is dropped as soon as the daemon stops; after that it gets its grace.
  noNewSteps.addEventListener("abort", abandonPost);
  abort.addEventListener("abort", abandonPost);
  if (noNewSteps.aborted) abandonPost();
  const result = await context.client.post(actionCall(intent.node, intent.request), drop.signal, () => {
    noNewSteps.removeEventListener("abort", abandonPost);
    blocker = precondition(intent);
    if (blocker !== null) throw new Error(blocker);
    if (clock.monotonic() - readAt > READ_TIMEOUT_MS) throw new Error("the node was read too long ago");
    const posting: Action = { ...action, sentAt: remediationState.now() };
    if (!remediationState.commit([actionChange(posting)])) throw new Error("the journal can't be written");
    action = posting;
  });
  noNewSteps.removeEventListener("abort", abandonPost);
  abort.removeEventListener("abort", abandonPost);
  if (blocker !== null) withdrawAction(context, intent, blocker, false);
  else if (result.kind === "not_sent" && drop.signal.aborted)
    withdrawAction(context, action, "the daemon stopped before it was sent", false);
  else recordOutcome(context, action, result);
}

/** Records an action of a dry run: everything happens but the POST. */
export function recordDryRun(context: ExecutorDeps, intent: Action): void {
  const now = context.remediationState.now();
  const episode = context.remediationState.records.episode(intent.episode)!;
  const action: Action = {
    ...intent,
    ...stateBeforeAction(context, intent.node),
    ...{ state: "sent", sentAt: now, outcome: "dry_run" },
  };
  const { policy, node, request } = action;
  context.metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome: "dry_run" });
  context.log.info({ policy, node, kind: request.kind, episode: episode.id }, "dry run: action not sent");
  commitTransition(context, episode, recordSent(episode, action, null, now), [actionChange(action)]);
}

/** Sends the notification of a notify step, and advances the episode. */
export function sendNotifyStep(context: ExecutorDeps, { active, episode }: Candidate): void {
  const { rule } = active.policy;
  const step = rule.steps[episode!.step];
  if (step?.action !== "notify") throw new Error(`step ${episode!.step} of ${episode!.id} is not a notify step`);
  const summary = `${episode!.node} is unhealthy by the policy ${rule.name} (${episode!.id}): step ${episode!.step + 1} asks to tell you`;
  if (!episode!.shadow)
    notifyOfEpisode(context, episode!, { kind: "step", severity: "critical", summary }, step.receiver);
  commitTransition(context, episode, advanceStep(episode!, rule, context.remediationState.now()));
}

/** Reads the node with a call of its own; returns why that failed, or null. */
async function readNodeNow(context: ExecutorDeps, { node }: Action, signal: AbortSignal): Promise<string | null> {
  const { client, clock, inventory } = context;
  const answer = await client.get(readNodeCall(node), "action", signal);
  if (!answer.ok) {
    const { kind, message } = answer.error;
    if (kind === "unauthorized" || kind === "forbidden") context.apiKey.recordRejected(message);
    return `the node could not be read: ${message}`;
  }
  const detail = decodeNodeDetail(answer.value.json, () => {});
  if (detail === null || detail.id !== node) return "the node could not be read: the answer is not the node's";
  if (!inventory.has(node)) return "the node is gone";
  inventory.recordDetail(detail, answer.value.at, clock.now());
  context.observed.replaceFleet(inventory.currentFleet());
  return null;
}

/** Returns the node's status and uptime before the action. */
function stateBeforeAction(context: ExecutorDeps, node: NodeId): Pick<Action, "uptimeHoursBefore" | "statusBefore"> {
  const slot = context.observed.slotOf(node);
  if (slot === null) return { uptimeHoursBefore: null };
  const { uptimeHours, status } = context.observed.fleet;
  const uptime = uptimeHours[slot]!;
  return { uptimeHoursBefore: Number.isNaN(uptime) ? null : uptime, statusBefore: NODE_STATUSES[status[slot]!]! };
}

function withdrawAction(context: ExecutorDeps, action: Action, detail: string, isFailure: boolean): void {
  const now = context.remediationState.now();
  const row: Action = { ...action, state: "withdrawn", sentAt: null, endedAt: now, detail };
  context.log.info({ action: action.id, node: action.node, detail }, "action withdrawn before it was sent");
  const current = context.remediationState.records.episode(action.episode);
  if (isFailure && current?.closedAt === null)
    commitTransition(context, current, recordUnsent(current, now), [actionChange(row)]);
  else context.remediationState.record([actionChange(row)]);
}

/** Records the outcome of a POST. */
function recordOutcome(context: ExecutorDeps, action: Action, result: PostResult): void {
  const now = context.remediationState.now();
  const episode = context.remediationState.records.episode(action.episode)!;
  const { policy, request, node } = action;
  const count = (outcome: "refused" | "failed" | "in_doubt") =>
    context.metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome });
  const log = { action: action.id, policy, node, kind: request.kind };
  /** `sentAt`: when it reached the service, which counts against max_actions; null: it did not. */
  const failed = (detail: string, sentAt: EpochMs | null): Action =>
    ({ ...action, state: "ended", sentAt, endedAt: now, outcome: "failed", detail }) satisfies Action;
  if (result.kind === "done" || result.kind === "refused") context.apiKey.recordAccepted();
  switch (result.kind) {
    case "done": {
      const reply = decodeActionReply(result.json);
      const row: Action = { ...action, state: "sent", detail: reply.message };
      context.log.info({ ...log, message: reply.message }, "action sent");
      const minutes = (reply.durationMinutes ?? 0) > 0 ? reply.durationMinutes : null;
      commitTransition(context, episode, recordSent(episode, row, minutes, now), [actionChange(row)]);
      return;
    }
    case "in_doubt": {
      count("in_doubt");
      const row: Action = { ...action, state: "sent", inDoubt: true, detail: result.message };
      context.log.warn({ ...log, problem: result.message }, "action in doubt; observation will settle it");
      commitTransition(context, episode, recordSent(episode, row, null, now), [actionChange(row)]);
      return;
    }
    case "refused": {
      count("refused");
      const row: Action = { ...action, state: "ended", endedAt: now, outcome: "refused", detail: result.message };
      context.log.warn({ ...log, problem: result.message }, "action refused by the service; episode given up");
      const rule = context.policies.find(policy)!.rule;
      const attempted = { ...episode, acted: episode.acted + 1 };
      commitTransition(context, episode, recordRefused(attempted, rule, now), [actionChange(row)]);
      return;
    }
    case "credentials":
      context.apiKey.recordRejected(result.message);
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
      context.log.warn({ ...log, problem: result.message }, "action not sent");
      commitTransition(context, episode, recordUnsent(episode, now), [actionChange(failed(result.message, null))]);
      return;
    default:
      result satisfies never;
  }
}

/** After a 429 the step is sent again later; after too many of them its episode is given up. */
function recordRateLimitedAction(
  context: ExecutorDeps,
  episode: Episode,
  action: Action,
  retryAfterMs: DurationMs | null,
): void {
  const now = context.remediationState.now();
  const recordAfter = recordRateLimited(episode, retryAfterMs, now);
  commitTransition(context, episode, recordAfter, [actionChange(action)]);
  const log = { action: action.id, policy: action.policy, node: action.node, attempts: recordAfter.limited };
  if (recordAfter.closedAt === null) {
    context.log.warn({ ...log, problem: action.detail }, "action rate limited; it is sent again later");
    return;
  }
  context.log.warn({ ...log, problem: action.detail }, "action rate limited too often; episode given up");
  const summary = `${action.node}: the service answered 429 to ${recordAfter.limited} attempts of ${action.policy} (${episode.id}); it is given up for now`;
  notifyOfEpisode(context, recordAfter, { kind: "given_up", severity: "critical", summary });
}
