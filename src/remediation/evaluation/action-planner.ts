import type { Decision } from "../../model/remediation/decision.ts";
import type { Action, Episode } from "../../model/remediation/episode.ts";
import type { Change } from "../../model/remediation/journal.ts";
import type { NodeId } from "../../model/node.ts";
import { type Candidate, nextStep } from "../../policy/candidate.ts";
import { decide, mayBegin } from "../../policy/decision.ts";
import { type ActivePolicy, type Facts, isShadow, isUnderWay } from "../../policy/facts.ts";
import { begun, nextRung } from "../../policy/episodes/episode.ts";
import { breath } from "../event-loop.ts";
import { candidateOf, expiryOf } from "./candidates.ts";
import { createdAtOf } from "../node-identity.ts";
import { queued } from "../execution/executor.ts";
import { noteAction, settle, tell } from "../execution/episode-transitions.ts";
import { activePolicies, type ToldDecision, type Ward } from "../context.ts";

/** Decides on every node that fires, and tells what changed. */
export interface Deciding {
  /** Decides on all; returns those to act on, whoever fires longest first. */
  decideAll(factsOf: (shadow: boolean) => Facts): Promise<readonly Candidate[]>;
  /** Decides on one, and tells it. */
  decideOne(candidate: Candidate, facts: Facts): Decision;
}

/** Candidates between two breaths. */
const CANDIDATES_PER_SLICE = 200;

/** A deciding that has told nothing yet. */
export function createDeciding(ward: Ward): Deciding {
  const { books, metrics, log } = ward;

  function decideOne(candidate: Candidate, facts: Facts): Decision {
    const decision = decide(candidate, facts);
    const changes = tellDecision(decision);
    if (changes.length > 0) books.record(changes);
    return decision;
  }

  /** What is to be written down of a decision: only a changed one is. */
  function tellDecision(decision: Decision): Change[] {
    const { policy, node, episode, step, verdict, blockers, mode } = decision;
    const reasons = [...new Set(blockers.map(({ reason }) => reason))];
    // Each step that is acted on is a decision of its own.
    const about = verdict === "act" ? `${episode} ${step}` : reasons.toSorted().join(" ");
    const text = `${mode} ${verdict} ${about}`;
    const key = keyOf(policy, node);
    if (ward.told.get(key)?.text === text) return [];
    ward.told.set(key, { policy, node, shadow: mode === "dry_run", text, reasons });
    for (const reason of verdict === "act" ? (["all_clear"] as const) : reasons) {
      metrics.inc("proxywarden_decisions_total", { policy, verdict, reason });
    }
    log.info({ policy, node, mode, verdict, reasons }, "decided");
    return [{ kind: "decision", row: decision }];
  }

  /** One node under one policy: null where there is nothing to act on. */
  function consider(active: ActivePolicy, node: NodeId, facts: Facts): Candidate | null {
    const candidate = candidateOf(ward, active, node);
    const { name } = active.policy.rule;
    if (candidate === null || candidate.judgement.verdict === "false") {
      ward.told.delete(keyOf(name, node));
      return null;
    }
    if (candidate.episode !== null && !isWaiting(ward, candidate.episode)) return null;
    const decision = decide(candidate, facts);
    const isSuspended = candidate.episode === null && books.casebook.suspended(name, node, isShadow(active)) !== null;
    if (isSuspended) {
      // It has to wait until the node is free: no second episode begins beside it.
      if (decision.verdict === "hold") books.record(tellDecision(decision));
      return null;
    }
    const canBegin = candidate.episode === null && candidate.judgement.verdict === "true" && mayBegin(decision);
    if (!canBegin) return conclude(candidate, decision);
    const createdAt = createdAtOf(ward, node);
    const episode = {
      ...begun(active, candidate.node, books.casebook.nextId("ep"), books.now()),
      ...(createdAt === null ? {} : { nodeCreatedAt: createdAt }),
    };
    settle(ward, null, episode);
    const withEpisode = { ...candidate, episode };
    return conclude(withEpisode, decide(withEpisode, facts));
  }

  function conclude(candidate: Candidate, decision: Decision): Candidate | null {
    // Told when its turn comes: those before it may leave no room.
    if (decision.verdict === "act" && candidate.episode !== null) return candidate;
    const changes = tellDecision(decision);
    if (changes.length > 0) books.record(changes);
    if (decision.blockers.length === 1 && decision.blockers[0]!.reason === "approval") askPerson(candidate);
    return null;
  }

  function askPerson(candidate: Candidate): void {
    const episode = candidate.episode!;
    const waits = books.casebook
      .actionsOf(episode.id)
      .some(({ step, state }) => step === episode.step && state === "awaiting");
    if (waits) return;
    const action = queued(ward, candidate);
    books.record([noteAction(action)]);
    const summary = `${action.id}: ${action.request.kind} of ${action.node} (${action.policy}) waits to be approved`;
    tell(ward, episode, { kind: "approval", severity: "warning", summary });
  }

  /** What waits for a person lapses with its evidence. */
  function lapse(): void {
    for (const action of books.casebook.actions()) {
      if (action.state !== "awaiting" && action.state !== "approved") continue;
      const episode = books.casebook.episode(action.episode);
      const why = lapsed(action, episode);
      if (why === null) continue;
      books.record([noteAction({ ...action, state: "lapsed", endedAt: books.now(), detail: why })]);
      log.info({ action: action.id, node: action.node, why }, "an action that waited for a person lapsed");
    }
  }

  function lapsed(action: Action, episode: Episode | null): string | null {
    const expiry = expiryOf(ward, action);
    if (expiry !== null) return expiry;
    if (episode === null || episode.closedAt !== null) return "its episode is over";
    if (episode.state === "suspended") return "its episode is suspended";
    if (episode.state !== "firing" || episode.step !== action.step) return "its step is over";
    const active = activePolicies(ward).find(({ policy }) => policy.rule.name === action.policy);
    if (active === undefined || active.policy.fingerprint !== action.fingerprint) return "its policy was changed";
    if (active.mode !== "approve") return "its policy needs no approval any more";
    const candidate = candidateOf(ward, active, action.node);
    if (candidate === null) return "the node is gone";
    return candidate.judgement.verdict === "false" ? "the node is not unhealthy any more" : null;
  }

  return {
    decideOne,
    async decideAll(factsOf) {
      books.batch(lapse);
      const acts: Candidate[] = [];
      // A survey of the fleet a world, and none where nothing fires.
      const known = new Map<boolean, Facts>();
      for (const active of activePolicies(ward)) {
        const timers = [...books.casebook.timersOf(active.policy.rule.name)];
        const firing = timers.flatMap(([node, { state }]) => (state === "firing" ? [node] : []));
        if (firing.length === 0) continue;
        const shadow = isShadow(active);
        const facts = known.get(shadow) ?? factsOf(shadow);
        known.set(shadow, facts);
        for (let begin = 0; begin < firing.length; begin += CANDIDATES_PER_SLICE) {
          if (begin > 0) await breath();
          const slice = firing.slice(begin, begin + CANDIDATES_PER_SLICE);
          acts.push(...books.batch(() => slice.flatMap((node) => consider(active, node, facts) ?? [])));
        }
      }
      for (const [key, told] of ward.told) if (!isFiring(told)) ward.told.delete(key);
      return acts.toSorted((a, b) => (a.timer.since ?? 0) - (b.timer.since ?? 0));
    },
  };

  function isFiring({ policy, node }: ToldDecision): boolean {
    return books.casebook.timer(policy, node).state === "firing";
  }
}

/** Carries out a step that tells people, and goes on to the next. */
export function sendNotice(ward: Ward, candidate: Candidate): void {
  const episode = candidate.episode!;
  const step = nextStep(candidate);
  if (step?.action !== "notify") throw new Error("the step is no notice");
  const summary = `${episode.node} is unhealthy by the policy ${episode.policy} (${episode.id}): step ${episode.step + 1} asks to tell you`;
  if (!episode.shadow) tell(ward, episode, { kind: "step", severity: "critical", summary }, step.receiver);
  settle(ward, episode, nextRung(episode, candidate.active.policy.rule, ward.books.now()));
}

/** Whether the next step of an episode may be decided on: nothing of it is under way. */
export const isWaiting = ({ books }: Ward, { id, state }: Episode): boolean =>
  state === "firing" && !books.casebook.actionsOf(id).some(isUnderWay);

const keyOf = (policy: string, node: NodeId): string => JSON.stringify([policy, node]);
