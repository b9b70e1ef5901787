import type { Action, Episode, Outcome } from "../../model/remediation/episode.ts";
import type { Change } from "../../model/remediation/journal.ts";
import { NODE_STATUSES, type NodeId, type NodeStatus } from "../../model/node.ts";
import type { EpochMs } from "../../model/time.ts";
import { isLost, isUnderWay, isUnlisted } from "../../policy/facts.ts";
import {
  afterClearing,
  afterLook,
  afterLoss,
  afterRefusal,
  afterStep,
  nextRung,
  proven,
  resumed,
  suspended,
  unlisted,
  withdrawn,
} from "../../policy/episodes/episode.ts";
import { aboutOf, type Policy, sourcesOf } from "../../policy/policy.ts";
import { rebootProof } from "../../policy/episodes/reboot-proof.ts";
import { INACTIVE, observe, type Timer } from "../../policy/timers/timer.ts";
import { holds, type Judgement, judge, type MaxAgeOf } from "../../policy/timers/verdict.ts";
import { type Aftermath, deadlines, type StepEnd, stepEnd } from "../../policy/episodes/verification.ts";
import { scopeOf } from "../evaluation/candidates.ts";
import { disown } from "../node-identity.ts";
import { endAction, endActions, noteAction, settle } from "./episode-transitions.ts";
import { active, maxAgeOf, policyAsOf, policyNamed, provenFact, slotOf, type Ward } from "../context.ts";

/** Follows open episodes by what is seen: verifies steps, minds quarantines, and closes what is over. */
export interface Following {
  /**
   * Looks at all open episodes. `replaced`: nodes whose id another node has by now. Not to be called while the fleet's data
   * can't be trusted.
   */
  follow(replaced: ReadonlySet<NodeId>): void;
}

/** A following of what the books hold. */
export function createFollowing(ward: Ward): Following {
  const { books } = ward;
  /** Records from before were looked at by whoever followed before. */
  const begunAt = ward.clock.monotonic();
  /** When the node's record that was looked at last was observed, by episode: one record is one look. */
  const lookedAt = new Map<string, number>();
  /** Of episodes that a step has healed: how long they are ill again. */
  const relapses = new Map<string, Timer>();

  function followOne(episode: Episode): void {
    const slot = slotOf(ward, episode.node);
    if (slot === null) {
      missing(episode);
      return;
    }
    const policy = policyNamed(ward, episode.policy);
    const present = episode.state === "suspended" ? back(episode) : episode;
    if (present.closedAt !== null) return;
    const { fleet } = ward.view!.snapshot;
    const isNew = fleet.listedAt[slot]! > (lookedAt.get(episode.id) ?? begunAt);
    lookedAt.set(episode.id, fleet.listedAt[slot]!);
    const looked = isNew ? look(present, NODE_STATUSES[fleet.status[slot]!]!) : present;
    if (looked.closedAt !== null) return;
    const action = underWay(looked);
    if (action !== null) verify(looked, action, slot);
    const judged = books.casebook.episode(looked.id)!;
    if (judged.closedAt !== null) return;
    if (policy === null || !isAbout(judged, policy) || isElsewhere(judged, policy)) abandon(judged);
    else if (action === null) mind(judged, policy, slot);
  }

  const underWay = ({ id }: Episode): Action | null => books.casebook.actionsOf(id).find(isUnderWay) ?? null;

  /**
   * The node of an episode has left the list. Without an action of ours it is forgotten after `forget_after`. A lost one is
   * not: only its return or accept-inventory ends that.
   */
  function missing(episode: Episode): void {
    const now = books.now();
    if (!isUnlisted(episode)) {
      settle(ward, episode, unlisted(episode, now));
      return;
    }
    const action = underWay(episode);
    if (action !== null && now >= endOfStep(action)) {
      const change = endAction(ward, action, action.shadow ? "dry_run" : "ineffective", {
        detail: "the node left the list",
      });
      settle(ward, episode, afterLoss(episode, action, now), [change]);
    } else if (!isLost(episode)) forget(episode, "the node did not come back");
  }

  function suspend(episode: Episode): void {
    settle(ward, episode, suspended(episode, books.now()));
  }

  /** Ends an episode that was suspended for `retry.forget_after`. */
  function forget(episode: Episode, why: string): void {
    if (isForgotten(episode, episode.stateAt)) withdraw(episode, why);
  }

  const isForgotten = (episode: Episode, since: EpochMs): boolean =>
    books.now() - since >= (policyOf(episode)?.rule.retry.forgetAfterMs ?? 0);

  function withdraw(episode: Episode, why: string): void {
    settle(ward, episode, withdrawn(episode, books.now()), endActions(ward, episode, why));
  }

  /** When the time of a step is up; at once where it is not understood any more. */
  function endOfStep(action: Action): EpochMs {
    const step = policyAsOf(ward, action.fingerprint)?.rule.steps[action.step];
    return step === undefined || step.action === "notify" ? 0 : deadlines(action, step.verify).end;
  }

  /** The policy of an episode as it is now; if it is no more, as it was. */
  const policyOf = ({ policy, fingerprint }: Episode): Policy | null =>
    policyNamed(ward, policy) ?? policyAsOf(ward, fingerprint);

  function back(episode: Episode): Episode {
    if (isUnlisted(episode) && isForgotten(episode, episode.unlistedAt!)) {
      withdraw(episode, "the node came back too late");
      return books.casebook.episode(episode.id)!;
    }
    const after = resumed(episode, underWay(episode) !== null, books.now());
    if (after !== episode) settle(ward, episode, after);
    return after;
  }

  function look(episode: Episode, status: NodeStatus): Episode {
    const after = afterLook(episode, status, books.now());
    if (after === episode) return after;
    const detail = "a person lifted the quarantine";
    settle(ward, episode, after, after.state === "freed" ? [veto(after), ...endActions(ward, after, detail)] : []);
    return after;
  }

  function veto(episode: Episode): Change {
    const { node, policy, id } = episode;
    const now = books.now();
    const until = now + (policyOf(episode)?.rule.retry.everyMs ?? 0);
    const reason = `a person lifted the quarantine of ${id}`;
    return { kind: "hold", row: { node, policy, kind: "vetoed", at: now, until, reason } };
  }

  /** What no policy of now stands behind is watched while our hand is on the node, and no longer. */
  function abandon(episode: Episode): void {
    if (episode.state === "acting" || episode.quarantine !== null) return;
    withdraw(episode, "its policy is gone or was changed");
  }

  /** Whether an episode is about what its policy is about now. */
  const isAbout = ({ fingerprint }: Episode, policy: Policy): boolean =>
    fingerprint === policy.fingerprint || aboutOf(fingerprint) === policy.about;

  /** Whether its policy works in the other world now: a dry run that became real, or the other way round. */
  function isElsewhere(episode: Episode, policy: Policy): boolean {
    const shadow = active(ward, policy).mode === "dry_run";
    return shadow !== episode.shadow && episode.state !== "acting" && episode.quarantine === null;
  }

  /** A step is judged by the policy under which it was sent, whatever became of that since. */
  function verify(episode: Episode, action: Action, slot: number): void {
    const policy = policyAsOf(ward, action.fingerprint);
    const step = policy?.rule.steps[action.step];
    if (policy === null || step === undefined || step.action === "notify") {
      withdraw(episode, "what it was sent for is not understood any more");
      return;
    }
    const isMadeUp = episode.shadow && action.request.kind === "quarantine";
    const seen = aftermath(action, policy, slot);
    const end = isMadeUp ? "verified" : stepEnd(action, step.verify, seen);
    if (seen.isFresh && seen.status === "rebooting" && !action.rebootingSeen) {
      books.record([noteAction({ ...action, rebootingSeen: true })]);
    }
    if (end !== null) finish(episode, books.casebook.action(action.id)!, end, policy, slot);
  }

  function aftermath(action: Action, policy: Policy, slot: number): Aftermath {
    const { fleet, sessions } = ward.view!.snapshot;
    const sentAt = action.sentAt ?? Number.POSITIVE_INFINITY;
    const isAfter = (at: number | null | undefined) => books.epochOf(at ?? Number.NaN) > sentAt;
    const observed = {
      nodes: isAfter(fleet.listedAt[slot]),
      details: isAfter(fleet.detailedAt[slot]),
      sessions: isAfter(sessions?.settledAt),
      stats: true,
      hourly: true,
    };
    // What was observed before the step was sent says nothing of what came of it: it is as unknown as stale data.
    const ages = maxAgeOf(ward, policy.rule);
    const sinceSent: MaxAgeOf = (source) => (observed[source] ? ages(source) : Number.NEGATIVE_INFINITY);
    const subject = scopeOf(ward).subject(slot);
    const now = ward.clock.monotonic();
    const expectation = policy.expects[action.step] ?? null;
    return {
      now: books.now(),
      isFresh: observed.nodes,
      status: NODE_STATUSES[fleet.status[slot]!]!,
      when: judge(policy, subject, sinceSent, now).verdict,
      expect: expectation === null ? null : holds(expectation, subject, sinceSent, now).verdict,
    };
  }

  const judgement = (policy: Policy, slot: number): Judgement =>
    judge(policy, scopeOf(ward).subject(slot), maxAgeOf(ward, policy.rule), ward.clock.monotonic());

  function finish(episode: Episode, action: Action, end: StepEnd, sentUnder: Policy, slot: number): void {
    const now = books.now();
    const policy = policyNamed(ward, episode.policy) ?? sentUnder;
    const isOurs = end !== "verified" || episode.repaired !== true;
    const outcome: Outcome = action.shadow ? "dry_run" : isOurs ? end : "in_doubt";
    const proof = action.request.kind === "reboot" && !action.shadow ? proofOf(action, slot) : null;
    const changes = [endAction(ward, action, outcome, isOurs ? { proof } : { proof, detail: REPAIRED })];
    const isProof = outcome === "verified" && action.fingerprint === policy.fingerprint;
    if (isProof) changes.push({ kind: "fact", key: provenFact(policy.rule.name), value: policy.fingerprint });
    relapses.delete(episode.id);
    settle(ward, episode, afterStep(episode, action, end, policy.rule, now), changes);
  }

  function proofOf(action: Action, slot: number) {
    const { fleet } = ward.view!.snapshot;
    const observedAt = ward.client.serviceTime(fleet.listedAt[slot]!);
    const elapsed = books.epochOf(fleet.listedAt[slot]!) - action.sentAt!;
    const uptime = fleet.uptimeHours[slot]!;
    return rebootProof({
      uptimeHoursBefore: action.uptimeHoursBefore,
      uptimeHoursNow: Number.isNaN(uptime) ? null : uptime,
      rebootingSeen: action.rebootingSeen,
      observedAt,
      postedAt: observedAt === null ? null : observedAt - elapsed,
    });
  }

  /** An episode that waits: for its next step, for its clearing, for the end of a quarantine, or to be seen again. */
  function mind(episode: Episode, policy: Policy, slot: number): void {
    const now = books.now();
    const { name, forMs, clearForMs } = policy.rule;
    if (episode.state === "acting") return;
    const { state } = books.casebook.timer(name, episode.node);
    if (episode.quarantine === null && state !== "firing") {
      relapses.delete(episode.id);
      if (state !== "lapsed") {
        settle(ward, episode, afterClearing(episode, now), endActions(ward, episode, "the node is well again"));
      } else if (episode.state !== "suspended") suspend(episode);
      else forget(episode, "its verdict stayed unknown");
      return;
    }
    if (episode.state === "suspended") {
      if (isNodeFree(episode)) settle(ward, episode, proven(episode, policy.rule, now));
      else forget(episode, "another episode has the node");
      return;
    }
    if (episode.state === "firing" && episode.step >= policy.rule.steps.length) {
      // A reload took its steps away.
      settle(ward, episode, afterRefusal(episode, policy.rule, now));
      return;
    }
    if (episode.state !== "recovering" && episode.state !== "probation") return;
    const { verdict, at, newest } = judgement(policy, slot);
    const gapMsMax = Math.max(...sourcesOf(policy).map(maxAgeOf(ward, policy.rule)));
    const before = relapses.get(episode.id) ?? INACTIVE;
    const relapse = observe(before, { verdict, at, newest, now }, { forMs, clearForMs, gapMsMax });
    relapses.set(episode.id, relapse);
    if (relapse.state !== "firing") return;
    relapses.delete(episode.id);
    settle(ward, episode, nextRung(episode, policy.rule, now));
  }

  /** Whether a suspended episode may have its node again: no other one has it, or has acted on it a short while ago. */
  function isNodeFree({ node, shadow, stateAt }: Episode): boolean {
    if (books.casebook.open(node, shadow) !== null) return false;
    const other = books.casebook.past(node, shadow).findLast(({ acted }) => acted > 0);
    const closedAt = other?.closedAt ?? Number.NEGATIVE_INFINITY;
    return closedAt < stateAt || books.now() - closedAt >= ward.rules.safety.cooldownMs;
  }

  return {
    follow(replaced) {
      for (const node of replaced) disown(ward, node);
      const open = books.casebook.openEpisodes();
      for (const episode of open) followOne(episode);
      const ids = new Set(open.map(({ id }) => id));
      for (const id of lookedAt.keys()) if (!ids.has(id)) lookedAt.delete(id);
      for (const id of relapses.keys()) if (!ids.has(id)) relapses.delete(id);
    },
  };
}

/** Detail of an action whose node recovered while an operator worked on it. */
const REPAIRED = "the node was in maintenance, or in a quarantine that is not ours, before this was verified";
