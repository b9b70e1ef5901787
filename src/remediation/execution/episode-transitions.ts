import { SECOND_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { Action, ActionOutcome, Episode } from "../../model/remediation/episode.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import type { Notification } from "../../model/remediation/notification.ts";
import { measureEfficacy } from "../../policy/episodes/efficacy.ts";
import { withdrawEpisode } from "../../policy/episodes/episode.ts";
import { consecutiveFailures, givenUpHold } from "../../policy/episodes/retries.ts";
import { isInFlight, isLost } from "../../policy/facts.ts";
import type { Policy } from "../../policy/policy.ts";
import { isUnfinished } from "../../policy/remediation-records.ts";
import type { RemediationContext } from "../context.ts";
import type { CandidateDeps } from "../evaluation/candidates.ts";
import { buildCandidate } from "../evaluation/candidates.ts";
import { efficacySinceFactKey, fallbackFactKey } from "../policy-set.ts";

/** What a transition of an episode writes to, and what follows from it reads. */
export type TransitionDeps = Pick<
  RemediationContext,
  "remediationState" | "policies" | "rules" | "notifier" | "metrics" | "log"
>;

/**
 * Journals an episode's new state, the other changes that belong to it and what follows from it, in one transaction, and sends
 * the notifications.
 */
export function commitTransition(
  context: TransitionDeps,
  before: Episode | null,
  after: Episode,
  otherChanges: readonly JournalChange[] = [],
): void {
  context.remediationState.runBatched(() => {
    context.remediationState.record([...otherChanges, { kind: "episode", row: after }]);
    context.log.info(
      { episode: after.id, policy: after.policy, node: after.node, state: after.state, dryRun: after.shadow },
      before === null ? "episode began" : "episode changed",
    );
    if (!after.shadow) recordFollowUps(context, before, after);
  });
}

/** What follows from a transition of an episode that is not a dry run. */
function recordFollowUps(context: TransitionDeps, before: Episode | null, after: Episode): void {
  if (before === null) context.notifier.notify(episodeNotification(after));
  const policy = context.policies.find(after.policy);
  if (after.closedAt !== null && before?.closedAt === null) closeEpisode(context, after, policy);
  if (isLost(after) && before !== null && !isLost(before)) {
    const summary = `${after.node} left the list after an action of ${after.policy} (${after.id}): it counts against the limits until it is back, or accept-inventory`;
    notifyOfEpisode(context, after, { kind: "lost", severity: "critical", summary });
    if (policy !== null) updateEfficacy(context, policy, after);
  }
  if (after.quarantine?.overdue === true && before?.quarantine?.overdue !== true) {
    const summary = `The quarantine of ${after.node} (${after.policy}, ${after.id}) has outlasted its time, and is left as it is`;
    notifyOfEpisode(context, after, { kind: "overdue", severity: "warning", summary });
  }
}

/** The journal change of an action's new state. */
export const actionChange = (row: Action): JournalChange => ({ kind: "action", row });

/** Returns the row of an action that ended, and counts it. Null: it was never sent. */
export function finishAction(
  { remediationState, metrics, log }: TransitionDeps,
  action: Action,
  outcome: ActionOutcome | null,
  more: Partial<Pick<Action, "proof" | "detail">>,
): JournalChange {
  const endedAt = remediationState.now();
  if (outcome === null) return actionChange({ ...action, ...more, state: "withdrawn", endedAt });
  const { policy, request, shadow: dryRun, id, node } = action;
  if (!dryRun) {
    metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome });
    const seconds = (endedAt - (action.sentAt ?? endedAt)) / SECOND_MS;
    if (outcome === "verified") {
      metrics.observe("proxywarden_action_duration_seconds", { action: request.kind }, seconds);
    }
    log.info({ action: id, policy, node, kind: request.kind, outcome, proof: more.proof }, "action ended");
  }
  return actionChange({ ...action, ...more, state: "ended", outcome, endedAt });
}

/** Returns the rows of the actions of an episode that closes while they are not over: what was sent is in doubt. */
export function finishActions(context: TransitionDeps, { id }: Episode, detail: string): JournalChange[] {
  return context.remediationState.records
    .actionsOf(id)
    .filter(isUnfinished)
    .map((action) => finishAction(context, action, isInFlight(action) ? "in_doubt" : null, { detail }));
}

const lostEpisodesOf = ({ remediationState }: TransitionDeps): Episode[] =>
  remediationState.records.openEpisodes().filter(isLost);

/** Nodes that left the list after an action of ours. */
export const lostNodes = (context: TransitionDeps): ReadonlySet<NodeId> =>
  new Set(lostEpisodesOf(context).map(({ node }) => node));

/** Closes an episode that can't go on, and finishes its actions. */
export function withdraw(context: TransitionDeps, episode: Episode, why: string): void {
  const after = withdrawEpisode(episode, context.remediationState.now());
  commitTransition(context, episode, after, finishActions(context, episode, why));
}

/** Withdraws the episodes of lost nodes: an operator accepts the losses, so they count against no limit and no policy any more. */
export function acceptLosses(context: TransitionDeps): void {
  for (const episode of lostEpisodesOf(context))
    withdraw(context, episode, "an operator accepted the loss of the node");
}

/** Sends one notification about an episode; `receiver`: to that one only. */
export function notifyOfEpisode(
  context: TransitionDeps,
  episode: Episode,
  about: Pick<Notification, "kind" | "severity" | "summary">,
  receiver?: string,
): void {
  const notification: Notification = {
    ...about,
    key: `${about.kind}/${episode.id}/${episode.step}`,
    policy: episode.policy,
    node: episode.node,
    episode: episode.id,
    region: episode.region,
    startsAt: context.remediationState.now(),
    endsAt: null,
  };
  if (receiver === undefined) context.notifier.notify(notification);
  else context.notifier.notify(notification, receiver);
}

/** Continues the notifications about open episodes after a restart. */
export function resumeEpisodeNotifications({ remediationState, notifier }: TransitionDeps): void {
  notifier.resume(
    remediationState.records
      .openEpisodes()
      .filter(({ shadow: dryRun }) => !dryRun)
      .map(episodeNotification),
  );
}

function episodeNotification({ id, policy, node, region, openedAt, closedAt, state }: Episode): Notification {
  const summary =
    closedAt === null
      ? `${node} is unhealthy by the policy ${policy} (${id})`
      : `${id} of ${node} under the policy ${policy} is over: ${state}`;
  const about = { kind: "episode", key: `episode/${id}`, severity: "warning", summary } as const;
  return { ...about, policy, node, episode: id, region, startsAt: openedAt, endsAt: closedAt };
}

function closeEpisode(context: TransitionDeps, episode: Episode, policy: Policy | null): void {
  context.notifier.notify(episodeNotification(episode));
  if (policy === null) return;
  if (episode.state === "given_up") giveUpNode(context, policy, episode);
  if (episode.acted > 0) updateEfficacy(context, policy, episode);
}

/** A node that a policy did not heal in as many episodes in a row as it may try is given up, and reported once. */
function giveUpNode(context: TransitionDeps, { rule }: Policy, episode: Episode): void {
  const { remediationState } = context;
  const { node } = episode;
  const failures = consecutiveFailures(remediationState.records, node, rule);
  if (failures.length < rule.retry.episodes || givenUpHold(remediationState.records, node, rule.name) !== null) return;
  const reason = `${failures.length} ${failures.length === 1 ? "episode" : "episodes in a row"} did not heal it`;
  const row = { node, policy: rule.name, kind: "given_up", at: remediationState.now(), until: null, reason } as const;
  remediationState.record([{ kind: "hold", row }]);
  const ids = failures.map(({ id }) => id).join(", ");
  const summary = `${node} is given up by the policy ${rule.name}: ${reason} (${ids}). It is not tried again until it is seen healthy or an operator releases it`;
  notifyOfEpisode(context, episode, { kind: "given_up", severity: "critical", summary });
}

/** Ends the holds of nodes that were given up and are seen healthy now. Not to be called while fleet data is not trusted. */
export function releaseRecoveredNodes(context: TransitionDeps & CandidateDeps): void {
  const { remediationState } = context;
  for (const { node, policy: name, kind, until } of remediationState.records.allHolds()) {
    if (kind !== "given_up" || until !== null || name === null) continue;
    const policy = context.policies.find(name);
    const candidate = policy === null ? null : buildCandidate(context, context.policies.activate(policy), node);
    if (candidate === null || candidate.node.status !== "online") continue;
    if (candidate.evaluation.verdict !== "false" || candidate.timer.state !== "inactive") continue;
    remediationState.record([{ kind: "hold_gone", node, policy: name }]);
    context.log.info({ node, policy: name }, "node released: healthy again");
  }
}

/** A policy that heals too little falls back to dry_run, until its text changes or an operator resets it. */
function updateEfficacy(context: TransitionDeps, policy: Policy, episode: Episode): void {
  const { records } = context.remediationState;
  const { name } = policy.rule;
  if (records.fact(fallbackFactKey(name)) === policy.fingerprint) return;
  const { fingerprint } = policy;
  const since = Number(records.fact(efficacySinceFactKey(name)) ?? 0);
  const { efficacy } = context.rules.safety;
  const counted = [...records.closedEpisodes(), ...lostEpisodesOf(context)];
  const { isTooLow: isPoor, healed, nodes } = measureEfficacy(counted, { policy: name, fingerprint, since }, efficacy);
  if (!isPoor) return;
  context.remediationState.record([{ kind: "fact", key: fallbackFactKey(name), value: fingerprint }]);
  const summary = `The policy ${name} healed ${healed} of the last ${nodes} nodes that it treated, and falls back to dry_run until its text changes or an operator orders reset-breaker`;
  context.log.warn({ policy: name, healed, nodes }, "policy fell back to dry_run: it heals too few nodes");
  notifyOfEpisode(context, episode, { kind: "efficacy", severity: "critical", summary });
}
