import type { Action, Episode } from "../model/remediation/episode.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import { withdrawEpisode as afterWithdrawal, recordSent } from "../policy/episodes/episode.ts";
import { applyRuleChange, toTimerRow } from "../policy/timers/timer.ts";
import type { RemediationContext } from "./context.ts";
import type { TransitionDeps } from "./execution/episode-transitions.ts";
import { actionChange, commitTransition } from "./execution/episode-transitions.ts";
import { knownCreatedAt } from "./node-identity.ts";
import { policySubjectFactKey } from "./policy-set.ts";

type RecoveryDeps = TransitionDeps & Pick<RemediationContext, "observed">;

/**
 * Settles what a stop or a crash left, before anything new is decided. What was only intended was not sent. What was
 * being sent may have been: it is in doubt, counts as sent, and is verified like any other; it is never sent again.
 */
export function recoverFromCrash(context: RecoveryDeps): void {
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
    context.log.warn({ rows: changes.length }, "settled actions that the last process left under way");
    remediationState.record(changes);
  }
  adoptPolicyChanges(context);
}

function markInDoubt({ remediationState, metrics }: RecoveryDeps, action: Action): JournalChange[] {
  const { policy, request } = action;
  metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome: "in_doubt" });
  const detail = "the daemon stopped while it was being sent";
  const row: Action = { ...action, state: "sent", inDoubt: true, detail };
  const episode = remediationState.records.episode(action.episode);
  if (episode === null || episode.closedAt !== null) return [actionChange(row)];
  return [actionChange(row), { kind: "episode", row: recordSent(episode, row, null, remediationState.now()) }];
}

/**
 * Continues timers and episodes under the current policies. Those of a policy with another condition start over. A raised
 * `for` withdraws episodes that it would not have let begin, unless an action was sent.
 */
function adoptPolicyChanges(context: RecoveryDeps): void {
  const { remediationState, policies } = context;
  const { records } = remediationState;
  const changes: JournalChange[] = [];
  const withdrawn: Episode[] = [];
  const known = new Map(policies.all.map((policy) => [policy.rule.name, policy]));
  for (const name of records.policiesWithTimers()) {
    const policy = known.get(name);
    const isSame = policy !== undefined && records.fact(policySubjectFactKey(name)) === policy.conditionKey;
    for (const [node, timer] of [...records.timersOf(name)]) {
      const { forMs = 0, clearForMs = 0 } = policy?.rule ?? {};
      const episode =
        policy === undefined ? null : records.openEpisode(node, context.policies.activate(policy).mode === "dry_run");
      const hasBegun = episode?.policy === name && episode.acted > 0;
      const next = hasBegun ? timer : applyRuleChange(timer, { forMs, clearForMs, gapMsMax: 0 });
      const row = isSame ? toTimerRow(name, node, next, knownCreatedAt(context, node)) : null;
      if (row === null || next !== timer) {
        changes.push(row === null ? { kind: "timer_gone", policy: name, node } : { kind: "timer", row });
      }
      records.setTimer(name, node, row === null ? { ...timer, state: "inactive" } : next);
      if ((row === null || row.state === "pending") && episode?.policy === name && !hasBegun) {
        withdrawn.push(episode);
      }
    }
  }
  for (const { rule, conditionKey: about } of policies.all)
    changes.push({ kind: "fact", key: policySubjectFactKey(rule.name), value: about });
  remediationState.record(changes);
  for (const episode of withdrawn) commitTransition(context, episode, afterWithdrawal(episode, remediationState.now()));
}
