import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { Decision } from "../../model/remediation/decision.ts";
import type { Action, ActionRequest, Episode } from "../../model/remediation/episode.ts";
import { NODE_STATUSES, type NodeId } from "../../model/node.ts";
import type { Step } from "../../model/policy/policy.ts";
import type { EpochMs } from "../../model/time.ts";
import { type Candidate, nextStep } from "../../policy/candidate.ts";
import { isShadow } from "../../policy/facts.ts";
import { afterFailure, afterLimit, afterRefusal, afterSending } from "../../policy/episodes/episode.ts";
import { actOn, readNode } from "../../api-client/endpoints.ts";
import type { PostResult } from "../../api-client/post-result.ts";
import { readActionReply, readNodeDetail } from "../../api-client/decoding/records.ts";
import { approvedAction } from "../evaluation/candidates.ts";
import { keyAccepted, keyRefused } from "./api-key-rejection.ts";
import type { ObstacleCache } from "../evaluation/external-blockers.ts";
import { noteAction, settle, tell } from "./episode-transitions.ts";
import { slotOf, type Ward } from "../context.ts";

/** Decides again on a candidate by what is known now; null: it is gone. */
export type Redecide = (candidate: Candidate) => { readonly candidate: Candidate; readonly decision: Decision } | null;

/** `stopping`: nothing new is to begin; `cutting`: what is under way is to end. */
export interface Signals {
  readonly stopping: AbortSignal;
  readonly cutting: AbortSignal;
}

const TEXT_CHARACTERS_MAX = 500;
/** A node is acted on within this after it was read afresh. */
const READING_MS_MAX: DurationMs = 30 * SECOND_MS;

/**
 * Takes the next step of an episode, once: the intent is written down, the node is read afresh and decided on again,
 * that it is being sent is written down, and then it is sent. Whatever comes of it is written down; nothing is sent again.
 */
export async function remediate(
  ward: Ward,
  obstacles: ObstacleCache,
  decided: Candidate,
  redecide: Redecide,
  { stopping, cutting }: Signals,
): Promise<void> {
  const { books } = ward;
  const intent = intended(ward, decided);
  if (!books.commit([noteAction(intent)])) return;
  await obstacles.ask(decided.active.policy, stopping);
  const problem = await readAfresh(ward, intent, stopping);
  if (problem !== null) {
    withdraw(ward, intent, decided.episode!, problem, !stopping.aborted);
    return;
  }
  const hindrance = hindranceOf(redecide(decided));
  if (hindrance !== null) {
    withdraw(ward, intent, decided.episode!, hindrance, false);
    return;
  }
  const readAt = ward.clock.monotonic();
  const posting: Action = { ...intent, ...stateBefore(ward, intent.node), state: "posting" };
  let sent = posting;
  let late: string | null = null;
  const leave = new AbortController();
  const giveUp = () => leave.abort();
  // Until it goes out it may be dropped at once; from then on it is given its grace.
  stopping.addEventListener("abort", giveUp);
  cutting.addEventListener("abort", giveUp);
  if (stopping.aborted) giveUp();
  const result = await ward.client.post(actOn(intent.node, intent.request), leave.signal, () => {
    stopping.removeEventListener("abort", giveUp);
    // It may have waited long for leave to be sent, and much may have happened meanwhile.
    if (ward.clock.monotonic() - readAt > READING_MS_MAX) throw new Error("the node was read too long ago");
    late = hindranceOf(redecide(decided));
    if (late !== null) throw new Error(late);
    sent = { ...posting, sentAt: books.now() };
    // Thrown before anything goes out: what can't be written down is not done.
    if (!books.commit([noteAction(sent)])) throw new Error("the journal can't be written");
  });
  stopping.removeEventListener("abort", giveUp);
  cutting.removeEventListener("abort", giveUp);
  if (late !== null) withdraw(ward, intent, decided.episode!, late, false);
  else if (result.kind === "not_sent" && leave.signal.aborted)
    withdraw(ward, sent, decided.episode!, "the daemon stopped before it was sent", false);
  else conclude(ward, sent, result);
}

/** Why what was decided is not to be done after all; null: it is. */
function hindranceOf(again: ReturnType<Redecide>): string | null {
  if (again === null) return "the node is gone";
  const { verdict, blockers } = again.decision;
  if (verdict === "act") return null;
  return blockers.map(({ reason, detail }) => `${reason}: ${detail}`).join("; ") || "it is not unhealthy any more";
}

/** A dry run of a step: everything but the sending. */
export function pretend(ward: Ward, { active, episode, ...candidate }: Candidate): void {
  const now = ward.books.now();
  const intent = intended(ward, { active, episode, ...candidate });
  const action: Action = {
    ...intent,
    ...stateBefore(ward, intent.node),
    ...{ state: "sent", sentAt: now, outcome: "dry_run" },
  };
  const { policy, request } = action;
  ward.metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome: "dry_run" });
  ward.log.info({ policy, node: action.node, kind: request.kind, episode: episode!.id }, "would act, but for dry_run");
  settle(ward, episode, afterSending(episode!, action, null, now), [noteAction(action)]);
}

/** Queues the step for a person to approve. */
export function queued(ward: Ward, candidate: Candidate): Action {
  return { ...intended(ward, candidate), state: "awaiting" };
}

function intended(ward: Ward, candidate: Candidate): Action {
  const { active, node, judgement, observedAt } = candidate;
  const episode = candidate.episode!;
  const approved = approvedAction(ward, episode.id, episode.step);
  if (approved !== null) return { ...approved, state: "intended" };
  const step = nextStep(candidate)!;
  return {
    id: ward.books.casebook.nextId("act"),
    episode: episode.id,
    policy: active.policy.rule.name,
    node: node.id,
    country: node.country,
    region: node.region,
    step: episode.step,
    shadow: isShadow(active),
    fingerprint: active.policy.fingerprint,
    request: requestOf(step, episode, active.policy.rule.when),
    state: "intended",
    evidence: { fields: judgement.fields(), observedAt },
    createdAt: ward.books.now(),
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

function requestOf(step: Step, episode: Episode, when: string): ActionRequest {
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
async function readAfresh(ward: Ward, { node }: Action, signal: AbortSignal): Promise<string | null> {
  const { client, clock, inventory } = ward;
  const answer = await client.get(readNode(node), "action", signal);
  if (!answer.ok) {
    const { kind, message } = answer.error;
    if (kind === "unauthorized" || kind === "forbidden") keyRefused(ward, message);
    return `the node could not be read: ${message}`;
  }
  const detail = readNodeDetail(answer.value.json, () => {});
  if (detail === null || detail.id !== node) return "the node could not be read: the answer is not the node's";
  if (ward.view === null || !inventory.has(node)) return "the node is gone";
  inventory.detail(detail, answer.value.at, clock.now());
  ward.view = { ...ward.view, snapshot: { ...ward.view.snapshot, fleet: inventory.fleet() } };
  return null;
}

/** How the node stands before something is done to it. */
function stateBefore(ward: Ward, node: NodeId): Pick<Action, "uptimeHoursBefore" | "statusBefore"> {
  const slot = slotOf(ward, node);
  if (slot === null) return { uptimeHoursBefore: null };
  const { uptimeHours, status } = ward.view!.snapshot.fleet;
  const uptime = uptimeHours[slot]!;
  return { uptimeHoursBefore: Number.isNaN(uptime) ? null : uptime, statusBefore: NODE_STATUSES[status[slot]!]! };
}

function withdraw(ward: Ward, action: Action, episode: Episode, detail: string, isFailure: boolean): void {
  const now = ward.books.now();
  const row: Action = { ...action, state: "withdrawn", sentAt: null, endedAt: now, detail };
  ward.log.info({ action: action.id, node: action.node, detail }, "an action is withdrawn before it was sent");
  const current = ward.books.casebook.episode(episode.id);
  if (isFailure && current?.closedAt === null) settle(ward, current, afterFailure(current, now), [noteAction(row)]);
  else ward.books.record([noteAction(row)]);
}

/** Writes down what came of a sending, by what the service answered. */
function conclude(ward: Ward, action: Action, result: PostResult): void {
  const now = ward.books.now();
  const episode = ward.books.casebook.episode(action.episode)!;
  const { policy, request, node } = action;
  const count = (outcome: "refused" | "failed" | "in_doubt") =>
    ward.metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome });
  const log = { action: action.id, policy, node, kind: request.kind };
  /** `sentAt`: when it reached the service, which counts against max_actions; null: it did not. */
  const failed = (detail: string, sentAt: EpochMs | null): Action =>
    ({ ...action, state: "ended", sentAt, endedAt: now, outcome: "failed", detail }) satisfies Action;
  if (result.kind === "done" || result.kind === "refused") keyAccepted(ward);
  switch (result.kind) {
    case "done": {
      const reply = readActionReply(result.json);
      const row: Action = { ...action, state: "sent", detail: reply.message };
      ward.log.info({ ...log, message: reply.message }, "an action was sent");
      const minutes = (reply.durationMinutes ?? 0) > 0 ? reply.durationMinutes : null;
      settle(ward, episode, afterSending(episode, row, minutes, now), [noteAction(row)]);
      return;
    }
    case "in_doubt": {
      count("in_doubt");
      const row: Action = { ...action, state: "sent", inDoubt: true, detail: result.message };
      ward.log.warn({ ...log, problem: result.message }, "an action is in doubt; what is seen will settle it");
      settle(ward, episode, afterSending(episode, row, null, now), [noteAction(row)]);
      return;
    }
    case "refused": {
      count("refused");
      const row: Action = { ...action, state: "ended", endedAt: now, outcome: "refused", detail: result.message };
      ward.log.warn({ ...log, problem: result.message }, "the service refused an action; its episode is given up");
      const rule = ward.policies.find((each) => each.rule.name === policy)!.rule;
      const tried = { ...episode, acted: episode.acted + 1 };
      settle(ward, episode, afterRefusal(tried, rule, now), [noteAction(row)]);
      return;
    }
    case "credentials":
      keyRefused(ward, result.message);
      count("failed");
      settle(ward, episode, afterFailure(episode, now), [noteAction(failed(result.message, action.sentAt))]);
      return;
    case "limited":
      count("failed");
      concludeLimited(ward, episode, failed(result.message, action.sentAt), result.retryAfterMs);
      return;
    case "not_sent":
      count("failed");
      ward.log.warn({ ...log, problem: result.message }, "an action could not be sent");
      settle(ward, episode, afterFailure(episode, now), [noteAction(failed(result.message, null))]);
      return;
    default:
      result satisfies never;
  }
}

/** After a 429: the same step is tried again after a wait, and its episode is given up after too many of them. */
function concludeLimited(ward: Ward, episode: Episode, action: Action, retryAfterMs: DurationMs | null): void {
  const now = ward.books.now();
  const after = afterLimit(episode, retryAfterMs, now);
  settle(ward, episode, after, [noteAction(action)]);
  const log = { action: action.id, policy: action.policy, node: action.node, attempts: after.limited };
  if (after.closedAt === null) {
    ward.log.warn({ ...log, problem: action.detail }, "an action was rate limited; it is sent again later");
    return;
  }
  ward.log.warn({ ...log, problem: action.detail }, "an action was rate limited too often; its episode is given up");
  const summary = `${action.node}: the service answered 429 to ${after.limited} attempts of ${action.policy} (${episode.id}); it is given up for now`;
  tell(ward, after, { kind: "given_up", severity: "critical", summary });
}
