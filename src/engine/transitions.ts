import type { Action, Episode } from "../model/episode.ts";
import type { Change } from "../model/journal.ts";
import type { Notice } from "../model/notice.ts";
import { efficacyOf } from "../policy/efficacy.ts";
import type { Policy } from "../policy/policy.ts";
import { fallenFact, policyNamed, type Ward } from "./ward.ts";

/** Writes down how an episode stands now, with what else belongs to it, and tells people what they should know. */
export function settle(ward: Ward, before: Episode | null, after: Episode, others: readonly Change[] = []): void {
  ward.books.record([...others, { kind: "episode", row: after }]);
  ward.log.info(
    { episode: after.id, policy: after.policy, node: after.node, state: after.state, shadow: after.shadow },
    before === null ? "an episode begins" : "an episode moves on",
  );
  if (after.shadow) return;
  const policy = policyNamed(ward, after.policy);
  if (before === null) ward.notifier.notify(episodeNotice(after));
  if (after.closedAt !== null && before?.closedAt === null) closeEpisode(ward, after, policy);
  if (after.quarantine?.overdue === true && before?.quarantine?.overdue !== true) {
    const summary = `The quarantine of ${after.node} (${after.policy}, ${after.id}) has outlasted its time, and is left as it is`;
    tell(ward, after, { kind: "overdue", severity: "warning", summary });
  }
}

/** Writes down how an action stands now. */
export const noteAction = (row: Action): Change => ({ kind: "action", row });

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
  const { acted, state, node } = episode;
  if (state === "given_up" && acted > 0) {
    const { retry } = policy?.rule ?? {};
    const rest = retry === undefined ? "" : `, at most ${retry.episodes} episodes are tried`;
    const summary = `${node} was not healed by the policy ${episode.policy} (${episode.id}) and is given up${rest}`;
    tell(ward, episode, { kind: "given_up", severity: "critical", summary });
  }
  if (policy !== null && acted > 0) judgeEfficacy(ward, policy, episode);
}

/** A policy that heals too little does no more than write down what it would do, until its text changes. */
function judgeEfficacy(ward: Ward, policy: Policy, episode: Episode): void {
  const { casebook } = ward.books;
  const { name } = policy.rule;
  if (casebook.fact(fallenFact(name)) === policy.fingerprint) return;
  const { fingerprint } = policy;
  const { efficacy } = ward.rules.safety;
  const { isPoor, healed, episodes } = efficacyOf(casebook.closed(), { policy: name, fingerprint }, efficacy);
  if (!isPoor) return;
  ward.books.record([{ kind: "fact", key: fallenFact(name), value: fingerprint }]);
  const summary = `The policy ${name} healed ${healed} of its last ${episodes} episodes, and falls back to dry_run until its text changes`;
  ward.log.warn({ policy: name, healed, episodes }, "a policy heals too little: it falls back to dry_run");
  tell(ward, episode, { kind: "efficacy", severity: "critical", summary });
}
