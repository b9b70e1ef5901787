import { eachInSteps, type Steps } from "../../base/steps.ts";
import type { NodeStatus } from "../../model/node.ts";
import type { Action, Episode } from "../../model/remediation/episode.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { isInFlight, releasedAt } from "../../policy/episodes/attempts.ts";
import {
  advanceStep,
  clearEpisode,
  endSteps,
  markUnlisted,
  observeAfterStep,
  observeStatus,
  recordStepLost,
  refireEpisode,
  resumeEpisode,
} from "../../policy/episodes/episode.ts";
import { hasActed, isDown, isLost, isUnderWay, isUnlisted, transition } from "../../policy/episodes/episode-states.ts";
import { stepDeadlines, UNOBSERVED_MS_MAX } from "../../policy/episodes/verification.ts";
import { conditionKeyOf, isDryRun, type Policy } from "../../policy/policy.ts";
import { INACTIVE, observeCondition, type Timer } from "../../policy/timer.ts";
import { hasLeft } from "../observed-fleet.ts";
import { commitTransition, finishAction, finishActions, withdraw } from "./episode-transitions.ts";
import { reportsOfPage } from "./node-reports.ts";
import { type VerificationDeps, verifyStep } from "./step-verification.ts";

/** Updates open episodes from observations. Verifies steps, tracks quarantines, and closes episodes that are over. */
export class EpisodeTracker {
  readonly #context: VerificationDeps;
  /** The start or the last reload. Records from before it may have been counted already, so they are not new. */
  readonly #recordsCountFrom: MonotonicMs;
  /** When the last record of its node was observed, by episode. Each record counts as one observation. */
  readonly #lastObservedAt = new Map<string, MonotonicMs>();
  /** For episodes that a step has healed, a timer that counts how long the node has been unhealthy again. */
  readonly #relapses = new Map<string, Timer>();

  constructor(context: VerificationDeps) {
    this.#context = context;
    this.#recordsCountFrom = context.clock.monotonic();
  }

  /** Updates those of these episodes that are open. Must not be called while fleet data is not trusted. */
  update(ids: readonly string[]): void {
    for (const id of ids) {
      const episode = this.#context.remediationState.records.episode(id);
      if (episode?.closedAt === null) this.#updateEpisode(episode);
    }
  }

  /** Forgets, in steps, what was observed during episodes that are closed. */
  *forgetClosed(): Steps<void> {
    const { records } = this.#context.remediationState;
    for (const memory of [this.#lastObservedAt, this.#relapses])
      yield* eachInSteps(memory.keys(), (id) => records.episode(id)?.closedAt === null || memory.delete(id));
  }

  #updateEpisode(episode: Episode): void {
    const { observed, policies, remediationState } = this.#context;
    const { fleet } = observed;
    const slot = observed.slotOf(episode.node);
    if (slot === null && !hasLeft(fleet, episode.node)) return;
    // What was listed before a suspension of the machine says nothing about the time since.
    const observedAt = slot === null ? fleet.settledFrom : fleet.listedAt.at(slot);
    if (observedAt !== null && observedAt <= remediationState.clock.suspendedAt()) {
      this.#endUnobservedStep(episode, slot);
      return;
    }
    if (slot === null || this.#mayPredateAbsence(episode, slot)) {
      this.#updateUnlisted(episode);
      return;
    }
    const status = observed.statusAt(slot);
    const present = episode.state === "suspended" ? this.#resume(episode, status) : episode;
    if (present.closedAt !== null) return;
    const listedAt = fleet.listedAt.at(slot);
    const isNew = listedAt > (this.#lastObservedAt.get(episode.id) ?? this.#recordsCountFrom);
    this.#lastObservedAt.set(episode.id, listedAt);
    const isObserved = isNew && !(status === "online" && this.#mayPredateQuarantine(present, slot));
    const current = isObserved ? this.#updateStatus(present, status) : present;
    if (current.closedAt !== null) return;
    if (current.state !== "recovering" && current.state !== "probation") this.#relapses.delete(current.id);
    const action = this.#inFlightAction(current);
    if (action !== null) verifyStep(this.#context, current, action, slot);
    const verified = remediationState.records.episode(current.id);
    if (verified?.closedAt !== null) return;
    const policy = policies.find(episode.policy);
    if (this.#isStuck(verified, policy)) this.#suspend(verified);
    else if (policy === null || !this.#belongsTo(verified, policy)) this.#abandon(verified);
    else if (action === null) this.#updateWaiting(verified, policy, slot);
  }

  #inFlightAction({ id }: Episode): Action | null {
    return this.#context.remediationState.records.actionsOf(id).find(isInFlight) ?? null;
  }

  #lastStep({ id }: Episode): Action | undefined {
    return this.#context.remediationState.records.actionsOf(id).findLast(({ sentAt }) => sentAt !== null);
  }

  /**
   * Ends a step whose node has not been observed for {@link UNOBSERVED_MS_MAX} after a suspension: in doubt or, if the
   * node had left the list and may not be back, as that of an unlisted node.
   */
  #endUnobservedStep(episode: Episode, slot: number | null): void {
    const { clock, remediationState } = this.#context;
    const action = this.#inFlightAction(episode);
    const isOver = clock.monotonic() - remediationState.clock.suspendedAt() >= UNOBSERVED_MS_MAX;
    if (!isOver || slot === null || action === null) return;
    if (isUnlisted(episode)) this.#updateUnlisted(episode);
    else verifyStep(this.#context, episode, action, slot);
  }

  /**
   * Updates an episode whose node has left the list. It ends after `forget_after`, unless its node is lost. Then it ends
   * only after the node returns, or with accept-inventory.
   */
  #updateUnlisted(episode: Episode): void {
    const now = this.#context.remediationState.now();
    if (!isUnlisted(episode)) {
      commitTransition(this.#context, episode, markUnlisted(episode, now));
      return;
    }
    const action = this.#inFlightAction(episode);
    if (action !== null && now >= this.#stepEnd(action)) {
      const change = finishAction(this.#context, action, "ineffective", { detail: "the node left the list" });
      commitTransition(this.#context, episode, recordStepLost(episode, action, now), [change]);
    } else this.#closeForgotten(episode, "the node did not come back");
  }

  /** Closes an episode that has been suspended for `retry.forget_after`, unless its node is lost. */
  #closeForgotten(episode: Episode, why: string): void {
    if (!isLost(episode) && this.#isForgotten(episode, episode.stateAt)) withdraw(this.#context, episode, why);
  }

  #isForgotten(episode: Episode, since: EpochMs): boolean {
    const forgetAfterMs = this.#policyOf(episode)?.spec.retry.forgetAfterMs ?? 0;
    return this.#context.remediationState.now() - since >= forgetAfterMs;
  }

  /** Returns when the time of a step is up, or 0 if this version can't read its policy. */
  #stepEnd(action: Action): EpochMs {
    const sentUnder = this.#context.policies.sentUnder(action);
    return sentUnder === null ? 0 : stepDeadlines(action, sentUnder.verify).end;
  }

  /** Returns the current policy of an episode, or the policy as it was if the configuration no longer has it. */
  #policyOf({ policy, fingerprint }: Episode): Policy | null {
    return this.#context.policies.find(policy) ?? this.#context.policies.withFingerprint(fingerprint);
  }

  /** Returns whether a step has left the node down, and no further step follows while it is. */
  #isStuck(episode: Episode, policy: Policy | null): boolean {
    if (!isDown(episode) || isUnderWay(episode)) return false;
    if (policy === null || !this.#belongsTo(episode, policy)) return true;
    const timer = this.#context.remediationState.records.timer(policy.spec.name, episode.node);
    return timer.state !== "firing" || episode.step >= policy.spec.steps.length;
  }

  #suspend(episode: Episode): void {
    if (episode.state === "suspended") return;
    commitTransition(this.#context, episode, transition(episode, "unseen", this.#context.remediationState.now()));
  }

  /** Updates a suspended episode whose node is listed. */
  #resume(episode: Episode, status: NodeStatus): Episode {
    const { remediationState } = this.#context;
    const now = remediationState.now();
    const lastStep = this.#lastStep(episode);
    const isBack = isUnlisted(episode) && lastStep !== undefined;
    const seen = isBack ? observeAfterStep(episode, lastStep, status, now) : episode;
    if (isUnlisted(episode) && !isDown(seen) && this.#isForgotten(episode, episode.unlistedAt!))
      return withdraw(this.#context, episode, "the node came back too late");
    const after = resumeEpisode(seen, this.#inFlightAction(episode) !== null, now);
    if (after !== episode) commitTransition(this.#context, episode, after);
    return after;
  }

  /**
   * Returns whether the record of a node in our quarantine may be older than the quarantine, as in a cached list: neither
   * the node nor most others on its page have reported since. Then it does not show that an operator lifted it.
   */
  #mayPredateQuarantine({ quarantine }: Episode, slot: number): boolean {
    const { remediationState } = this.#context;
    const sentAt = quarantine === null ? null : (remediationState.records.action(quarantine.action)?.sentAt ?? null);
    if (sentAt === null || remediationState.now() >= quarantine!.endsAt) return false;
    const { page, isSilent, hasReported } = reportsOfPage(this.#context, slot, sentAt);
    return isSilent && page.filter(hasReported).length <= page.length / 2;
  }

  /**
   * Returns whether the record of a lost node may be older than its absence, as in the list of an outdated replica: of
   * the online nodes on its page, most have not reported since, or its page has shown nothing else that is new. Then it
   * does not show that the node is back.
   */
  #mayPredateAbsence(episode: Episode, slot: number): boolean {
    if (!isLost(episode) || !isUnlisted(episode)) return false;
    const { page, isSilent, hasReported } = reportsOfPage(this.#context, slot, episode.unlistedAt!);
    if (!isSilent) return false;
    const online = page.filter((each) => this.#context.observed.statusAt(each) === "online");
    return online.length === 0 ? page.length === 1 : online.filter(hasReported).length <= online.length / 2;
  }

  #updateStatus(episode: Episode, status: NodeStatus): Episode {
    const { clock } = this.#context.remediationState;
    const now = clock.now();
    const lastStep = episode.state === "recovering" ? this.#lastStep(episode) : undefined;
    // A reboot can be verified before the node goes down for it.
    const seen = lastStep?.request.kind === "reboot" ? observeAfterStep(episode, lastStep, status, now) : episode;
    const after = observeStatus(seen, status, now, clock.lagMs());
    if (after === episode) return after;
    const changes =
      after.state === "freed"
        ? [this.#vetoOf(after), ...finishActions(this.#context, after, "an operator lifted the quarantine")]
        : [];
    commitTransition(this.#context, episode, after, changes);
    return after;
  }

  #vetoOf(episode: Episode): JournalChange {
    const { node, policy, id } = episode;
    const now = this.#context.remediationState.now();
    const until = now + (this.#policyOf(episode)?.spec.retry.everyMs ?? 0);
    const reason = `an operator lifted the quarantine of ${id}`;
    const released = releasedAt(this.#context.remediationState.records, node, policy);
    const row = { node, policy, kind: "vetoed", at: now, until, reason, releasedAt: released } as const;
    return { kind: "hold", row };
  }

  /** Ends an episode that does not belong to a current policy, once no action and no quarantine of ours is under way. */
  #abandon(episode: Episode): void {
    if (isUnderWay(episode)) return;
    withdraw(this.#context, episode, "its policy was removed or changed, or is now in dry_run");
  }

  /**
   * Returns whether the policy still has the condition that the episode began with, and both are dry runs or both are
   * not.
   */
  #belongsTo(episode: Episode, policy: Policy): boolean {
    const isSameCondition =
      episode.fingerprint === policy.fingerprint || conditionKeyOf(episode.fingerprint) === policy.conditionKey;
    const hasSwitched = isDryRun(this.#context.policies.activate(policy)) !== episode.dryRun;
    return isSameCondition && (!hasSwitched || isUnderWay(episode));
  }

  /** Updates an episode that waits for its next step, for `clear_for`, for the end of a quarantine, or for its node. */
  #updateWaiting(episode: Episode, policy: Policy, slot: number): void {
    const { remediationState } = this.#context;
    const now = remediationState.now();
    const { spec } = policy;
    if (episode.state === "acting") return;
    const timer = remediationState.records.timer(spec.name, episode.node).state;
    if (episode.quarantine === null && timer !== "firing") {
      this.#relapses.delete(episode.id);
      if (timer !== "lapsed") {
        const changes = finishActions(this.#context, episode, "the node is healthy again");
        commitTransition(this.#context, episode, clearEpisode(episode, now), changes);
      } else if (episode.state === "suspended") this.#closeForgotten(episode, "its verdict stayed unknown");
      else this.#suspend(episode);
    } else if (episode.state === "suspended") {
      if (this.#isNodeFree(episode)) commitTransition(this.#context, episode, refireEpisode(episode, spec, now));
      else this.#closeForgotten(episode, "another episode has the node");
    } else if (episode.state === "firing" && episode.step >= spec.steps.length) {
      // A reload removed its steps.
      commitTransition(this.#context, episode, endSteps(episode, spec, now));
    } else if (episode.state === "recovering" || episode.state === "probation") {
      if (!this.#hasRelapsed(episode, policy, slot)) return;
      this.#relapses.delete(episode.id);
      commitTransition(this.#context, episode, advanceStep(episode, spec, now));
    }
  }

  /** Returns whether a node that a step has healed has been unhealthy again for `for`. */
  #hasRelapsed(episode: Episode, policy: Policy, slot: number): boolean {
    const { observed, clock, remediationState } = this.#context;
    const { verdict, at, newest } = observed.evaluate(policy, slot, clock.monotonic());
    const before = this.#relapses.get(episode.id) ?? INACTIVE;
    const observation = { verdict, at, newest, now: remediationState.now() };
    const relapse = observeCondition(before, observation, observed.timerDurations(policy));
    this.#relapses.set(episode.id, relapse);
    return relapse.state === "firing";
  }

  /**
   * Returns whether a suspended episode may have its node again, because no other episode has it, and none that acted has
   * ended both during the suspension and within the cooldown.
   */
  #isNodeFree({ node, dryRun, stateAt }: Episode): boolean {
    const { remediationState, config } = this.#context;
    if (remediationState.records.openEpisode(node, dryRun) !== null) return false;
    const other = remediationState.records.closedEpisodesOfId(node, dryRun).findLast(hasActed);
    const closedAt = other?.closedAt ?? Number.NEGATIVE_INFINITY;
    return closedAt < stateAt || remediationState.now() - closedAt >= config.safety.cooldownMs;
  }
}
