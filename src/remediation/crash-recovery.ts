import type { DurationMs } from "../base/duration.ts";
import type { Action, Episode } from "../model/remediation/episode.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import { recordSent } from "../policy/episodes/episode.ts";
import { transition } from "../policy/episodes/episode-states.ts";
import { conditionKeyOf, isDryRun, type Policy } from "../policy/policy.ts";
import { applyLongerFor, INACTIVE, lapsedTimer, type Timer } from "../policy/timer.ts";
import type { EpisodeContext } from "./context.ts";
import { actionChange, commitTransition, finishAction } from "./execution/episode-transitions.ts";
import { conditionFactKey, forFactKey } from "./policy-set.ts";

/**
 * Settles what a stop or a crash left unfinished, before anything new is decided. An intended action was not sent: it is
 * withdrawn, or remains approved. An action that was being sent may have been executed. It is in doubt, counts as sent
 * and is verified, but is never sent again.
 */
export function recoverFromCrash(context: EpisodeContext): void {
  const { remediationState } = context;
  const now = remediationState.now();
  const changes: JournalChange[] = [];
  for (const action of remediationState.records.actions()) {
    if (action.state === "intended") {
      const detail = "the daemon stopped before it was sent";
      const settled =
        action.approvedAt === undefined
          ? ({ state: "withdrawn", endedAt: now } as const)
          : ({ state: "approved" } as const);
      changes.push(actionChange({ ...action, ...settled, detail }));
    } else if (action.state === "posting") changes.push(...markInDoubt(context, action));
  }
  if (changes.length > 0) {
    context.log.warn({ rows: changes.length }, "settled actions that the last process left unfinished");
    remediationState.record(changes);
  }
  adoptPolicyChanges(context);
}

/** Returns the changes for an action that was being sent. If its episode is closed, nothing will verify it, so it ends. */
function markInDoubt(context: EpisodeContext, action: Action): JournalChange[] {
  const { remediationState, metrics } = context;
  const detail = "the daemon stopped while it was being sent";
  const episode = remediationState.records.episode(action.episode);
  if (episode?.closedAt !== null) return [finishAction(context, action, "in_doubt", { detail })];
  const { policy, request } = action;
  metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome: "in_doubt" });
  const row: Action = { ...action, state: "sent", inDoubt: true, detail };
  return [actionChange(row), { kind: "episode", row: recordSent(episode, row, null, remediationState.now()) }];
}

/**
 * Continues timers and episodes under the current policies. Timers of a policy that was removed, or whose condition
 * changed, start over. If `for` became longer, a timer that has not reached it no longer fires. Episodes whose timer no
 * longer fires are withdrawn, unless an action was sent.
 */
function adoptPolicyChanges(context: EpisodeContext): void {
  const { remediationState, policies } = context;
  const { records } = remediationState;
  const changes: JournalChange[] = [];
  const withdrawn: Episode[] = [];
  for (const name of records.policiesWithTimers()) {
    const active = policies.findActive(name);
    const isSameCondition = records.fact(conditionFactKey(name)) === active?.policy.conditionKey;
    const forMsBefore = Number(records.fact(forFactKey(name)) ?? 0);
    for (const [node, timer] of [...records.timersOf(name)]) {
      const episode = active === null ? null : records.episodeUnder(name, node, isDryRun(active));
      const hasActed = episode !== null && episode.acted > 0;
      const next =
        active !== null && isSameCondition ? adoptFor(timer, active.policy, forMsBefore, hasActed) : INACTIVE;
      const change = records.setTimer(name, node, next);
      if (next !== timer) changes.push(change);
      const fires = next.state === "firing" || next.state === "lapsed";
      if (!fires && !hasActed && episode !== null) withdrawn.push(episode);
    }
  }
  changes.push(...restoreTimers(context));
  const unchanged = policies.all.filter(
    ({ spec, conditionKey }) => records.fact(conditionFactKey(spec.name)) === conditionKey,
  );
  remediationState.lastHealthy.retain(new Set(unchanged.map(({ spec }) => spec.name)));
  for (const { spec, conditionKey } of policies.all) {
    changes.push({ kind: "fact", key: conditionFactKey(spec.name), value: conditionKey });
    changes.push({ kind: "fact", key: forFactKey(spec.name), value: String(spec.forMs) });
  }
  remediationState.record(changes);
  for (const episode of withdrawn)
    commitTransition(context, episode, transition(episode, "withdrawn", remediationState.now()));
}

/**
 * Returns timers for the open episodes that have none, because their policy was removed or changed and is back. Without a
 * timer they would count as healthy once their step or quarantine is over.
 */
function restoreTimers({ remediationState, policies }: EpisodeContext): JournalChange[] {
  const { records } = remediationState;
  return records.openEpisodes().flatMap(({ policy: name, node, fingerprint, acted }) => {
    const isSameCondition = policies.find(name)?.conditionKey === conditionKeyOf(fingerprint);
    if (acted === 0 || !isSameCondition || records.timer(name, node).state !== "inactive") return [];
    return [records.setTimer(name, node, lapsedTimer(remediationState.now()))];
  });
}

/** Returns the timer under the current `for`. It stays as it is if its episode has sent an action. */
const adoptFor = (timer: Timer, { spec }: Policy, forMsBefore: DurationMs, hasActed: boolean): Timer =>
  hasActed || spec.forMs <= forMsBefore ? timer : applyLongerFor(timer, spec.forMs);
