import type { Action, Episode } from "../model/remediation/episode.ts";
import type { Change } from "../model/remediation/journal.ts";
import { afterSending, withdrawn as afterWithdrawal } from "../policy/episodes/episode.ts";
import { reruled, rowOf } from "../policy/timers/timer.ts";
import { knownCreatedAt } from "./node-identity.ts";
import { noteAction, settle } from "./execution/episode-transitions.ts";
import { aboutFact, active, type Ward } from "./context.ts";

/**
 * Settles what a stop or a crash left, before anything new is decided. What was only intended was not sent. What was
 * being sent may have been: it is in doubt, counts as sent, and is verified like any other; it is never sent again.
 */
export function recover(ward: Ward): void {
  const { books } = ward;
  const now = books.now();
  const changes: Change[] = [];
  for (const action of [...books.casebook.actions()]) {
    if (action.state === "intended") {
      const detail = "the daemon stopped before it was sent";
      changes.push(noteAction({ ...action, state: "withdrawn", endedAt: now, detail }));
    } else if (action.state === "posting") changes.push(...inDoubt(ward, action));
  }
  if (changes.length > 0) {
    ward.log.warn({ rows: changes.length }, "settled what the last run left under way");
    books.record(changes);
  }
  adoptPolicies(ward);
}

function inDoubt({ books, metrics }: Ward, action: Action): Change[] {
  const { policy, request } = action;
  metrics.inc("proxywarden_actions_total", { policy, action: request.kind, outcome: "in_doubt" });
  const detail = "the daemon stopped while it was being sent";
  const row: Action = { ...action, state: "sent", inDoubt: true, detail };
  const episode = books.casebook.episode(action.episode);
  if (episode === null || episode.closedAt !== null) return [noteAction(row)];
  return [noteAction(row), { kind: "episode", row: afterSending(episode, row, null, books.now()) }];
}

/**
 * Timers and episodes run on under the policies as they are now: of a policy that is about something else all of them
 * begin anew; a raised `for` takes back what it would not have let begin, as long as nothing was done.
 */
function adoptPolicies(ward: Ward): void {
  const { books, policies } = ward;
  const { casebook } = books;
  const changes: Change[] = [];
  const withdrawn: Episode[] = [];
  const known = new Map(policies.map((policy) => [policy.rule.name, policy]));
  for (const name of casebook.timedPolicies()) {
    const policy = known.get(name);
    const isSame = policy !== undefined && casebook.fact(aboutFact(name)) === policy.about;
    for (const [node, timer] of [...casebook.timersOf(name)]) {
      const { forMs = 0, clearForMs = 0 } = policy?.rule ?? {};
      const episode = policy === undefined ? null : casebook.open(node, active(ward, policy).mode === "dry_run");
      const isBegun = episode?.policy === name && episode.acted > 0;
      const next = isBegun ? timer : reruled(timer, { forMs, clearForMs, gapMsMax: 0 });
      const row = isSame ? rowOf(name, node, next, knownCreatedAt(ward, node)) : null;
      if (row === null || next !== timer) {
        changes.push(row === null ? { kind: "timer_gone", policy: name, node } : { kind: "timer", row });
      }
      casebook.setTimer(name, node, row === null ? { ...timer, state: "inactive" } : next);
      if ((row === null || row.state === "pending") && episode?.policy === name && !isBegun) {
        withdrawn.push(episode);
      }
    }
  }
  for (const { rule, about } of policies) changes.push({ kind: "fact", key: aboutFact(rule.name), value: about });
  books.record(changes);
  for (const episode of withdrawn) settle(ward, episode, afterWithdrawal(episode, books.now()));
}
