import { SECOND_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import { type Action, type ActionOutcome, type Episode, isUnfinished } from "../../model/remediation/episode.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import type { Notification } from "../../model/remediation/notification.ts";
import { givenUpHold, isInFlight, measureEfficacy } from "../../policy/episodes/attempts.ts";
import { isAcceptableLoss, isLost, isUnlisted, transition } from "../../policy/episodes/episode-states.ts";
import type { Policy } from "../../policy/policy.ts";
import type { EpisodeContext } from "../context.ts";
import { buildCandidate } from "../evaluation/decision-input.ts";
import { hasLeft } from "../observed-fleet.ts";
import { efficacySinceFactKey, fallbackFactKey } from "../policy-set.ts";
import { EPISODE_MEMORY_MS } from "../state/journaled-state.ts";

/**
 * Journals an episode's new state, the changes that belong to it and its consequences in one transaction, and sends
 * notifications.
 */
export function commitTransition(
  context: EpisodeContext,
  before: Episode | null,
  after: Episode,
  otherChanges: readonly JournalChange[] = [],
): void {
  context.remediationState.runBatched(() => {
    context.remediationState.record([...otherChanges, { kind: "episode", row: after }]);
    context.log.info(
      { episode: after.id, policy: after.policy, node: after.node, state: after.state, dry_run: after.dryRun },
      before === null ? "episode opened" : "episode changed",
    );
    if (!after.dryRun) recordConsequences(context, before, after);
  });
}

/** Records what follows from the transition of an episode that is not a dry run. */
function recordConsequences(context: EpisodeContext, before: Episode | null, after: Episode): void {
  const policy = context.policies.find(after.policy);
  const hasClosed = after.closedAt !== null && before?.closedAt === null;
  const isNewLoss = isLost(after) && before !== null && !isLost(before);
  if (before === null || hasClosed) context.notifier.notify(episodeNotification(context, after));
  if (policy !== null && hasClosed && after.state === "given_up") giveUpNode(context, policy, after);
  if (isNewLoss) {
    const [what, until] = isUnlisted(after) ? ["left the list", "returns"] : ["is down", "is available again"];
    const summary = `${nodeText(context, after.node)} ${what} after an action of ${after.policy} (${after.id}): it counts against the limits until it ${until} or accept-inventory is run`;
    notifyOfEpisode(context, after, { kind: "lost", severity: "critical", summary });
  }
  if (policy !== null && (isNewLoss || (hasClosed && after.acted > 0))) updateEfficacy(context, policy, after);
  if (after.quarantine?.overdue === true && before?.quarantine?.overdue !== true) {
    const summary = `The quarantine of ${nodeText(context, after.node)} (${after.policy}, ${after.id}) should have ended but is still active; the service or an operator must end it`;
    notifyOfEpisode(context, after, { kind: "overdue", severity: "warning", summary });
  }
}

/** Returns the journal change of an action's new state. */
export const actionChange = (row: Action): JournalChange => ({ kind: "action", row });

/**
 * Returns the journal change of an action that ended, and counts it. `outcome` is null if it was never sent. The action
 * of a dry run is not counted, and its outcome is `dry_run`.
 */
export function finishAction(
  { remediationState, metrics, log }: EpisodeContext,
  action: Action,
  outcome: ActionOutcome | null,
  result: Partial<Pick<Action, "proof" | "detail">>,
): JournalChange {
  const endedAt = remediationState.now();
  if (outcome === null) return actionChange({ ...action, ...result, state: "withdrawn", endedAt });
  if (action.dryRun) return actionChange({ ...action, ...result, state: "ended", outcome: "dry_run", endedAt });
  const { policy, request, id, node } = action;
  const { kind } = request;
  const isCounted = outcome === "in_doubt" && action.inDoubt;
  if (!isCounted) metrics.inc("proxywarden_actions_total", { policy, action: kind, outcome });
  const seconds = (endedAt - (action.sentAt ?? endedAt)) / SECOND_MS;
  if (outcome === "verified") metrics.observe("proxywarden_action_duration_seconds", { action: kind }, seconds);
  log.info({ action: id, policy, node, kind, outcome, proof: result.proof }, "action ended");
  return actionChange({ ...action, ...result, state: "ended", outcome, endedAt });
}

/**
 * Returns the journal changes of an episode's unfinished actions when it closes. An action that was sent is in doubt.
 */
export function finishActions(context: EpisodeContext, { id }: Episode, detail: string): JournalChange[] {
  return context.remediationState.records
    .actionsOf(id)
    .filter(isUnfinished)
    .map((action) => finishAction(context, action, isInFlight(action) ? "in_doubt" : null, { detail }));
}

/**
 * Returns the episodes whose loss an operator can accept: their nodes left the list, or are down, after an action of
 * ours. A POST that is under way must first have an outcome.
 */
export const acceptableLosses = ({ remediationState: { records } }: EpisodeContext): Episode[] =>
  records
    .openEpisodes()
    .filter(
      (episode) => isAcceptableLoss(episode) && !records.actionsOf(episode.id).some(({ state }) => state === "posting"),
    );

/** Closes an episode that can't go on, and finishes its actions. Returns the closed episode. */
export function withdraw(context: EpisodeContext, episode: Episode, why: string): Episode {
  const after = transition(episode, "withdrawn", context.remediationState.now());
  commitTransition(context, episode, after, finishActions(context, episode, why));
  return after;
}

/**
 * Withdraws the episodes of lost nodes after an operator has accepted the losses, which then no longer count against
 * limits or policies.
 */
export function acceptLosses(context: EpisodeContext): void {
  for (const episode of acceptableLosses(context))
    withdraw(context, episode, "an operator accepted the loss of the node");
}

/** Sends a notification about an episode to its receivers, or only to `receiver`. */
export function notifyOfEpisode(
  context: EpisodeContext,
  episode: Episode,
  about: Pick<Notification, "kind" | "severity" | "summary">,
  receiver?: string,
): void {
  const { id, policy, node, region, step } = episode;
  const startsAt = context.remediationState.now();
  const subject = { key: `${about.kind}/${id}/${step}`, policy, node, episode: id, region, startsAt, endsAt: null };
  context.notifier.notify({ ...about, ...subject }, receiver);
}

/** Returns the name and the id of a node, or its id alone if its name is not known. */
export function nodeText({ observed }: Pick<EpisodeContext, "observed">, node: NodeId): string {
  const name = observed.nameOf(node);
  return name === node ? node : `${name} (${node})`;
}

/** Resumes the notifications about open episodes after a restart. */
export function resumeEpisodeNotifications(context: EpisodeContext): void {
  context.notifier.resume(
    context.remediationState.records
      .openEpisodes()
      .filter(({ dryRun }) => !dryRun)
      .map((episode) => episodeNotification(context, episode)),
  );
}

function episodeNotification(context: EpisodeContext, episode: Episode): Notification {
  const { id, policy, node, region, openedAt, closedAt, state } = episode;
  const name = nodeText(context, node);
  const summary =
    closedAt === null
      ? `${name} is unhealthy under the policy ${policy} (${id})`
      : `${id} of ${name} under the policy ${policy} is over: ${state}`;
  const about = { kind: "episode", key: `episode/${id}`, severity: "warning", summary } as const;
  return { ...about, policy, node, episode: id, region, startsAt: openedAt, endsAt: closedAt };
}

/** Gives up on a node if the policy failed to heal it in `retry.episodes` episodes in a row, and notifies once. */
function giveUpNode(context: EpisodeContext, { spec }: Policy, episode: Episode): void {
  const { remediationState } = context;
  const { node } = episode;
  const failures = [...(episode.failedBefore ?? []), episode.id];
  if (failures.length < spec.retry.episodes || givenUpHold(remediationState.records, node, spec.name) !== null) return;
  const reason = `${failures.length} ${failures.length === 1 ? "episode" : "episodes in a row"} did not heal it`;
  const row = { node, policy: spec.name, kind: "given_up", at: remediationState.now(), until: null, reason } as const;
  remediationState.record([{ kind: "hold", row }]);
  const summary = `The policy ${spec.name} gave up on ${nodeText(context, node)}: ${reason} (${failures.join(", ")}). It does not treat the node again until the node is healthy or an operator releases it`;
  notifyOfEpisode(context, episode, { kind: "given_up", severity: "critical", summary });
}

/**
 * Ends the holds of given-up nodes that are healthy now, and those of nodes that have left the list and were given up so
 * long ago that their episodes are forgotten. Must not be called while fleet data is not trusted.
 */
export function releaseRecoveredNodes(context: EpisodeContext): void {
  const { remediationState, observed } = context;
  for (const { node, policy, kind, at, until } of remediationState.records.allHolds()) {
    if (kind !== "given_up" || until !== null || policy === null) continue;
    const isOld = remediationState.now() - at >= EPISODE_MEMORY_MS;
    const isForgotten = isOld && hasLeft(observed.fleet, node);
    if (!isForgotten && !isHealthy(context, policy, node)) continue;
    remediationState.record([{ kind: "hold_gone", node, policy }]);
    context.log.info(
      { node, policy },
      isForgotten ? "node released: it left the list" : "node released: healthy again",
    );
  }
}

function isHealthy(context: EpisodeContext, policyName: string, node: NodeId): boolean {
  const active = context.policies.findActive(policyName);
  const candidate = active === null ? null : buildCandidate(context, active, node);
  if (candidate === null || candidate.node.status !== "online") return false;
  return candidate.evaluation.verdict === "false" && candidate.timer.state === "inactive";
}

/** Lets a policy that heals too few nodes fall back to dry_run, until its text changes or an operator resets it. */
function updateEfficacy(context: EpisodeContext, policy: Policy, episode: Episode): void {
  const { records } = context.remediationState;
  const { name } = policy.spec;
  const { fingerprint } = policy;
  if (records.fact(fallbackFactKey(name)) === fingerprint) return;
  const since = Number(records.fact(efficacySinceFactKey(name)) ?? 0);
  const { efficacy } = context.config.safety;
  const counted = [...records.closedEpisodes(), ...records.openEpisodes().filter(isLost)];
  const { isTooLow, healed, nodes } = measureEfficacy(counted, { policy: name, fingerprint, since }, efficacy);
  if (!isTooLow) return;
  context.remediationState.record([{ kind: "fact", key: fallbackFactKey(name), value: fingerprint }]);
  const summary = `The policy ${name} healed ${healed} of the last ${nodes} nodes that it treated, and falls back to dry_run until its text changes or an operator runs reset-breaker`;
  context.log.warn({ policy: name, healed, nodes }, "policy fell back to dry_run: it heals too few nodes");
  notifyOfEpisode(context, episode, { kind: "efficacy", severity: "critical", summary });
}
