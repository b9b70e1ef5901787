import { type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import { onOneLine } from "../base/text.ts";
import type { Action, ActionRequest, Blocker, Decision, Episode } from "../model/remediation/episode.ts";
import type { EpochMs } from "../model/time.ts";
import { isInFlight } from "./episodes/attempts.ts";
import { isDown, isLost } from "./episodes/episode-states.ts";
import { correlatedGuard } from "./guards/correlated-failure.ts";
import { DAEMON_GUARDS } from "./guards/daemon-guards.ts";
import { type Candidate, type GuardFacts, type GuardRow, type HoldReasonRow, nextStep } from "./guards/guard-types.ts";
import { LIMIT_GUARDS } from "./guards/limit-guards.ts";
import { NODE_GUARDS } from "./guards/node-guards.ts";
import { POLICY_GUARDS } from "./guards/policy-guards.ts";
import { RETRY_GUARDS } from "./guards/retry-guards.ts";
import { breakerGuard, stormGuard } from "./guards/storm-and-breaker.ts";
import { isDryRun, type Policy } from "./policy.ts";
import type { RemediationRecords } from "./remediation-records.ts";

/** Maximum number of characters of a quarantine's reason. */
const QUARANTINE_REASON_CHARACTERS_MAX = 500;

/** An alert fires for every hold that lasts longer than this. */
export const HOLD_MS_MAX: DurationMs = 6 * HOUR_MS;

/** The alert for any node that is held for too long. */
export const HELD_TOO_LONG = "ProxywardenHeldTooLong";

/** Every guard. All of them are checked, and every blocker is reported. */
export const GUARDS = [
  ...DAEMON_GUARDS,
  ...POLICY_GUARDS,
  ...NODE_GUARDS,
  ...RETRY_GUARDS,
  stormGuard,
  correlatedGuard,
  breakerGuard,
  ...LIMIT_GUARDS,
];

type ReasonOf<Guard> = Guard extends GuardRow<infer Reason> ? Reason : never;
/** The reasons to hold a node. All that apply are reported, not just the first. */
export type HoldReason = ReasonOf<(typeof GUARDS)[number]>;

/** The row of every reason, with its alert. `explain`, the status page and the documentation read it. */
export const HOLD_REASON_ROWS = Object.fromEntries(
  GUARDS.flatMap(({ reasons }) => Object.entries<HoldReasonRow>(reasons)).map(([reason, row]) => [
    reason,
    { alert: HELD_TOO_LONG, ...row },
  ]),
) as Readonly<Record<HoldReason, HoldReasonRow>>;

/** The reasons, in the order of the guards. */
export const HOLD_REASONS = Object.keys(HOLD_REASON_ROWS) as readonly HoldReason[];

/** Returns every blocker of the candidate's next step. */
export function findBlockers(candidate: Candidate, facts: GuardFacts): readonly Blocker<HoldReason>[] {
  const isNotice = nextStep(candidate)?.action === "notify";
  return GUARDS.filter(({ appliesToNotify }) => appliesToNotify || !isNotice).flatMap(
    (guard): readonly Blocker<HoldReason>[] => guard.check(candidate, facts),
  );
}

/**
 * Returns the canary episode of a policy whose current version is not proven: the episode with an action in flight,
 * even if its node has left the list; else one whose node is down or lost after its action; else the oldest episode
 * that has sent an action and can proceed. Null means that the next episode to act becomes the canary.
 */
export function findCanary(
  { spec, fingerprint }: Policy,
  records: RemediationRecords,
  canProceed: (episode: Episode) => boolean,
): Episode | null {
  const sentActionsOf = ({ id }: Episode) =>
    records
      .actionsOf(id)
      // One that failed was certainly not executed.
      .filter(
        ({ sentAt, outcome, fingerprint: own }) => sentAt !== null && outcome !== "failed" && own === fingerprint,
      );
  const candidates = records
    .openEpisodes()
    .filter((episode) => !episode.dryRun && episode.policy === spec.name && sentActionsOf(episode).length > 0)
    .toSorted((a, b) => a.openedAt - b.openedAt);
  return (
    candidates.find((episode) => sentActionsOf(episode).some(isInFlight)) ??
    candidates.find((episode) => isDown(episode) || isLost(episode)) ??
    candidates.find(canProceed) ??
    null
  );
}

/** Returns whether a canary can proceed: its next step is due, and all its blockers hold every node of its policy. */
export const canProceed = (candidate: Candidate, facts: GuardFacts): boolean =>
  isDue(candidate) &&
  findBlockers(candidate, { ...facts, canaryEpisode: () => null }).every(
    ({ reason }) => HOLD_REASON_ROWS[reason].policyWide,
  );

/** Returns whether a step is due: the timer is firing, `when` is still true, and no step is in progress. */
const isDue = ({ evaluation, timer, episode }: Candidate): boolean =>
  evaluation.verdict === "true" && timer.state === "firing" && (episode === null || episode.state === "firing");

/** Decides on a candidate with a firing timer: to act if there are no blockers, and otherwise to hold. */
export function decide(candidate: Candidate, facts: GuardFacts): Decision<HoldReason> {
  const { active, node, episode, evaluation } = candidate;
  const blockers = findBlockers(candidate, facts);
  return {
    at: facts.now,
    policy: active.policy.spec.name,
    node: node.id,
    episode: episode?.id ?? null,
    step: episode?.step ?? 0,
    mode: active.mode,
    verdict: blockers.length === 0 && isDue(candidate) ? "act" : "hold",
    blockers,
    evidence: { fields: evaluation.fields(), observedAt: candidate.observedAt },
  };
}

/** Returns whether the decision allows an episode to begin. */
export const mayBeginEpisode = ({ blockers }: Decision<HoldReason>): boolean =>
  blockers.every(({ reason }) => !HOLD_REASON_ROWS[reason].preventsEpisode);

/** Returns the action of a candidate's next step, with its evidence. Throws if the step is not an action. */
export function planAction(candidate: Candidate, id: string, now: EpochMs): Action {
  const { active, node, evaluation, observedAt } = candidate;
  const episode = candidate.episode!;
  return {
    id,
    episode: episode.id,
    policy: active.policy.spec.name,
    node: node.id,
    country: node.country,
    region: node.region,
    step: episode.step,
    dryRun: isDryRun(active),
    fingerprint: active.policy.fingerprint,
    request: actionRequestOf(candidate),
    state: "intended",
    evidence: { fields: evaluation.fields(), observedAt },
    createdAt: now,
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

function actionRequestOf(candidate: Candidate): ActionRequest {
  const step = nextStep(candidate);
  switch (step?.action) {
    case "disconnect":
      return { kind: "disconnect" };
    case "reboot":
      return { kind: "reboot", force: step.force };
    case "quarantine": {
      const { id, policy, node } = candidate.episode!;
      const { when } = candidate.active.policy.spec;
      const values: Readonly<Record<string, string>> = { policy, when, episode: id, node };
      const reason = step.reason.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name: string) => values[name] ?? "");
      return {
        kind: "quarantine",
        reason: onOneLine(reason).slice(0, QUARANTINE_REASON_CHARACTERS_MAX),
        durationMinutes: Math.round(step.durationMs / MINUTE_MS),
      };
    }
    case "notify":
    case undefined:
      throw new Error(`step ${candidate.episode!.step} of ${candidate.episode!.id} is not an action`);
    default:
      return step satisfies never;
  }
}

/**
 * Returns why a planned action must not be sent, or null if it may be sent. `candidate` is the node under its policy as
 * observed after the decision, or null if the node is gone.
 */
export function precondition(action: Action, candidate: Candidate | null, facts: GuardFacts): string | null {
  if (candidate === null) return "the node is gone";
  const { active, episode } = candidate;
  if (episode?.id !== action.episode || episode.step !== action.step) return "its episode has moved on";
  if (active.policy.fingerprint !== action.fingerprint) return "its policy was changed";
  if (facts.inFlight.some((other) => other.episode === action.episode)) return "an action of its episode is in flight";
  // The approval that led to the action counts, although the action is no longer listed as approved.
  const approved = candidate.approved || action.approvedAt !== undefined;
  const blockers = findBlockers({ ...candidate, approved }, facts);
  if (blockers.length > 0) return blockers.map(({ reason, detail }) => `${reason}: ${detail}`).join("; ");
  return isDue(candidate) ? null : "the node is no longer unhealthy";
}
