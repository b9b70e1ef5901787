import { SECOND_MS } from "../../base/duration.ts";
import type { Action, Episode, Outcome } from "../../model/remediation/episode.ts";
import type { Change } from "../../model/remediation/journal.ts";
import type { NodeId } from "../../model/node.ts";
import type { Notice } from "../../model/remediation/notification.ts";
import { isLive } from "../../policy/remediation-state.ts";
import { efficacyOf } from "../../policy/episodes/efficacy.ts";
import { isLost, isUnderWay } from "../../policy/facts.ts";
import { withdrawn } from "../../policy/episodes/episode.ts";
import type { Policy } from "../../policy/policy.ts";
import { failuresInRow, givenUpHold } from "../../policy/episodes/retries.ts";
import { candidateOf } from "../evaluation/candidates.ts";
import { active, efficacySinceFact, fallenFact, policyNamed, type Ward } from "../context.ts";

/**
 * Writes down how an episode stands now, with what else belongs to it and with what follows from it, in one transaction;
 * and tells people what they should know.
 */
export function settle(ward: Ward, before: Episode | null, after: Episode, others: readonly Change[] = []): void {
  ward.books.batch(() => {
    ward.books.record([...others, { kind: "episode", row: after }]);
    ward.log.info(
      { episode: after.id, policy: after.policy, node: after.node, state: after.state, shadow: after.shadow },
      before === null ? "an episode begins" : "an episode moves on",
    );
    if (!after.shadow) follow(ward, before, after);
  });
}

/** What follows from a change of a real episode. */
function follow(ward: Ward, before: Episode | null, after: Episode): void {
  if (before === null) ward.notifier.notify(episodeNotice(after));
  const policy = policyNamed(ward, after.policy);
  if (after.closedAt !== null && before?.closedAt === null) closeEpisode(ward, after, policy);
  if (isLost(after) && before !== null && !isLost(before)) {
    const summary = `${after.node} left the list after an action of ${after.policy} (${after.id}): it counts against the limits until it is back, or accept-inventory`;
    tell(ward, after, { kind: "lost", severity: "critical", summary });
    if (policy !== null) judgeEfficacy(ward, policy, after);
  }
  if (after.quarantine?.overdue === true && before?.quarantine?.overdue !== true) {
    const summary = `The quarantine of ${after.node} (${after.policy}, ${after.id}) has outlasted its time, and is left as it is`;
    tell(ward, after, { kind: "overdue", severity: "warning", summary });
  }
}

/** Writes down how an action stands now. */
export const noteAction = (row: Action): Change => ({ kind: "action", row });

/** Returns the row of an action that ended, and counts it. Null: it was never sent. */
export function endAction(
  { books, metrics, log }: Ward,
  action: Action,
  outcome: Outcome | null,
  more: Partial<Pick<Action, "proof" | "detail">>,
): Change {
  const endedAt = books.now();
  if (outcome === null) return noteAction({ ...action, ...more, state: "withdrawn", endedAt });
  const { policy, request, shadow, id, node } = action;
  if (!shadow) {
    metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome });
    const seconds = (endedAt - (action.sentAt ?? endedAt)) / SECOND_MS;
    if (outcome === "verified") {
      metrics.observe("proxywarden_action_duration_seconds", { action: request.kind }, seconds);
    }
    log.info({ action: id, policy, node, kind: request.kind, outcome, proof: more.proof }, "an action ended");
  }
  return noteAction({ ...action, ...more, state: "ended", outcome, endedAt });
}

/** Returns the rows of the actions of an episode that closes while they are not over: what was sent is in doubt. */
export function endActions(ward: Ward, { id }: Episode, detail: string): Change[] {
  return ward.books.casebook
    .actionsOf(id)
    .filter(isLive)
    .map((action) => endAction(ward, action, isUnderWay(action) ? "in_doubt" : null, { detail }));
}

const lostEpisodes = ({ books }: Ward): Episode[] => books.casebook.openEpisodes().filter(isLost);

/** Nodes that left the list after an action of ours. */
export const lostNodes = (ward: Ward): ReadonlySet<NodeId> => new Set(lostEpisodes(ward).map(({ node }) => node));

/**
 * Ends the losses of nodes that left the list after an action, since an operator accepts them. Their episodes are
 * withdrawn: they count against no limit and no policy any more.
 */
export function acceptLosses(ward: Ward): void {
  for (const episode of lostEpisodes(ward)) {
    const after = withdrawn(episode, ward.books.now());
    settle(ward, episode, after, endActions(ward, episode, "an operator accepted the loss of the node"));
  }
}

/** Tells people about an episode, once; `receiver`: only that one. */
export function tell(
  ward: Ward,
  episode: Episode,
  about: Pick<Notice, "kind" | "severity" | "summary">,
  receiver?: string,
): void {
  const notice: Notice = {
    ...about,
    key: `${about.kind}/${episode.id}/${episode.step}`,
    policy: episode.policy,
    node: episode.node,
    episode: episode.id,
    region: episode.region,
    startsAt: ward.books.now(),
    endsAt: null,
  };
  if (receiver === undefined) ward.notifier.notify(notice);
  else ward.notifier.notify(notice, receiver);
}

/** What was told of open episodes before a restart goes on being told. */
export function resumeTelling({ books, notifier }: Ward): void {
  notifier.resume(
    books.casebook
      .openEpisodes()
      .filter(({ shadow }) => !shadow)
      .map(episodeNotice),
  );
}

function episodeNotice({ id, policy, node, region, openedAt, closedAt, state }: Episode): Notice {
  const summary =
    closedAt === null
      ? `${node} is unhealthy by the policy ${policy} (${id})`
      : `${id} of ${node} under the policy ${policy} is over: ${state}`;
  const about = { kind: "episode", key: `episode/${id}`, severity: "warning", summary } as const;
  return { ...about, policy, node, episode: id, region, startsAt: openedAt, endsAt: closedAt };
}

function closeEpisode(ward: Ward, episode: Episode, policy: Policy | null): void {
  ward.notifier.notify(episodeNotice(episode));
  if (policy === null) return;
  if (episode.state === "given_up") giveUp(ward, policy, episode);
  if (episode.acted > 0) judgeEfficacy(ward, policy, episode);
}

/** A node that a policy did not heal in as many episodes in a row as it may try is given up, and reported once. */
function giveUp(ward: Ward, { rule }: Policy, episode: Episode): void {
  const { books } = ward;
  const { node } = episode;
  const failures = failuresInRow(books.casebook, node, rule);
  if (failures.length < rule.retry.episodes || givenUpHold(books.casebook, node, rule.name) !== null) return;
  const reason = `${failures.length} ${failures.length === 1 ? "episode" : "episodes in a row"} did not heal it`;
  const row = { node, policy: rule.name, kind: "given_up", at: books.now(), until: null, reason } as const;
  books.record([{ kind: "hold", row }]);
  const ids = failures.map(({ id }) => id).join(", ");
  const summary = `${node} is given up by the policy ${rule.name}: ${reason} (${ids}). It is not tried again until it is seen healthy or an operator releases it`;
  tell(ward, episode, { kind: "given_up", severity: "critical", summary });
}

/** Ends the holds of nodes that were given up and are seen healthy now. Not to be called while fleet data is not trusted. */
export function endGivenUp(ward: Ward): void {
  const { books } = ward;
  for (const { node, policy: name, kind, until } of books.casebook.allHolds()) {
    if (kind !== "given_up" || until !== null || name === null) continue;
    const policy = policyNamed(ward, name);
    const candidate = policy === null ? null : candidateOf(ward, active(ward, policy), node);
    if (candidate === null || candidate.node.status !== "online") continue;
    if (candidate.judgement.verdict !== "false" || candidate.timer.state !== "inactive") continue;
    books.record([{ kind: "hold_gone", node, policy: name }]);
    ward.log.info({ node, policy: name }, "a node that was given up is healthy again");
  }
}

/** A policy that heals too little falls back to dry_run, until its text changes or an operator resets it. */
function judgeEfficacy(ward: Ward, policy: Policy, episode: Episode): void {
  const { casebook } = ward.books;
  const { name } = policy.rule;
  if (casebook.fact(fallenFact(name)) === policy.fingerprint) return;
  const { fingerprint } = policy;
  const since = Number(casebook.fact(efficacySinceFact(name)) ?? 0);
  const { efficacy } = ward.rules.safety;
  const counted = [...casebook.closed(), ...lostEpisodes(ward)];
  const { isPoor, healed, nodes } = efficacyOf(counted, { policy: name, fingerprint, since }, efficacy);
  if (!isPoor) return;
  ward.books.record([{ kind: "fact", key: fallenFact(name), value: fingerprint }]);
  const summary = `The policy ${name} healed ${healed} of the last ${nodes} nodes that it treated, and falls back to dry_run until its text changes or an operator orders reset-breaker`;
  ward.log.warn({ policy: name, healed, nodes }, "a policy heals too little: it falls back to dry_run");
  tell(ward, episode, { kind: "efficacy", severity: "critical", summary });
}
