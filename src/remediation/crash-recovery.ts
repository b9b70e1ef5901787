import type { Action, Episode } from "../model/remediation/episode.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import { recordSent, withdrawEpisode } from "../policy/episodes/episode.ts";
import { isDryRun } from "../policy/facts.ts";
import type { Policy } from "../policy/policy.ts";
import { applyRuleChange, INACTIVE, type Timer } from "../policy/timers/timer.ts";
import { actionChange, commitTransition, type TransitionDeps } from "./execution/episode-transitions.ts";
import { conditionFactKey } from "./policy-set.ts";

/**
 * Settles what a stop or a crash left unfinished, before anything new is decided. An intended action was not sent, and
 * is withdrawn. An action that was being sent may have been executed. It is in doubt, counts as sent and is verified,
 * but is never sent again.
 */
export function recoverFromCrash(context: TransitionDeps): void {
  const { remediationState } = context;
  const now = remediationState.now();
  const changes: JournalChange[] = [];
  for (const action of [...remediationState.records.actions()]) {
    if (action.state === "intended") {
      const detail = "the daemon stopped before it was sent";
      changes.push(actionChange({ ...action, state: "withdrawn", endedAt: now, detail }));
    } else if (action.state === "posting") changes.push(...markInDoubt(context, action));
  }
  if (changes.length > 0) {
    context.log.warn({ rows: changes.length }, "settled actions that the last process left unfinished");
    remediationState.record(changes);
  }
  adoptPolicyChanges(context);
}

function markInDoubt({ remediationState, metrics }: TransitionDeps, action: Action): JournalChange[] {
  const { policy, request } = action;
  metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome: "in_doubt" });
  const detail = "the daemon stopped while it was being sent";
  const row: Action = { ...action, state: "sent", inDoubt: true, detail };
  const episode = remediationState.records.episode(action.episode);
  if (episode === null || episode.closedAt !== null) return [actionChange(row)];
  return [actionChange(row), { kind: "episode", row: recordSent(episode, row, null, remediationState.now()) }];
}

/**
 * Continues timers and episodes under the current policies. Timers of a policy whose condition changed start over. A
 * longer `for` withdraws episodes that would not have begun under it, unless an action was sent.
 */
function adoptPolicyChanges(context: TransitionDeps): void {
  const { remediationState, policies } = context;
  const { records } = remediationState;
  const changes: JournalChange[] = [];
  const withdrawn: Episode[] = [];
  for (const name of records.policiesWithTimers()) {
    const active = policies.findActive(name);
    const isSameCondition = records.fact(conditionFactKey(name)) === active?.policy.conditionKey;
    for (const [node, timer] of [...records.timersOf(name)]) {
      const open = active === null ? null : records.openEpisode(node, isDryRun(active));
      const episode = open?.policy === name ? open : null;
      const hasActed = episode !== null && episode.acted > 0;
      const next = active !== null && isSameCondition ? adoptRule(timer, active.policy, hasActed) : INACTIVE;
      const change = records.setTimer(name, node, next);
      if (next !== timer) changes.push(change);
      const fires = next.state === "firing" || next.state === "lapsed";
      if (!fires && !hasActed && episode !== null) withdrawn.push(episode);
    }
  }
  for (const { rule, conditionKey } of policies.all)
    changes.push({ kind: "fact", key: conditionFactKey(rule.name), value: conditionKey });
  remediationState.record(changes);
  for (const episode of withdrawn) commitTransition(context, episode, withdrawEpisode(episode, remediationState.now()));
}

/**
 * Returns the timer under the current rule of its policy. It stays as it is while an episode with a sent action needs
 * it.
 */
const adoptRule = (timer: Timer, { rule }: Policy, hasActed: boolean): Timer =>
  hasActed ? timer : applyRuleChange(timer, rule);
