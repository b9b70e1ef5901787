import type { Action } from "../model/remediation/episode.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import { withdrawEpisode } from "../policy/episodes/episode.ts";
import { isInFlight } from "../policy/facts.ts";
import { isUnfinished } from "../policy/remediation-records.ts";
import { INACTIVE } from "../policy/timers/timer.ts";
import type { RemediationContext } from "./context.ts";
import { STORM } from "./evaluation/fleet-health.ts";
import { INCIDENTS } from "./evaluation/incidents.ts";
import { ACCEPTED_MISSING, BASELINE } from "./evaluation/inventory-trust.ts";
import type { TransitionDeps } from "./execution/episode-transitions.ts";
import { actionChange, commitTransition } from "./execution/episode-transitions.ts";
import { canaryFactKey } from "./policy-set.ts";

type ServiceDeps = TransitionDeps & Pick<RemediationContext, "serviceUrl">;

/** The fact that says which service the journal is about: its base URL. */
const SERVICE_FACT = "warden.service";

/** Facts about a fleet that say nothing about another one. */
const FACTS_OF_SERVICE: readonly string[] = [BASELINE, ACCEPTED_MISSING, STORM, INCIDENTS];

/**
 * Makes the journal one of the service that is configured. Where it was another's, everything that was open there ends:
 * nodes of equal ids are other nodes. What limits actions (closed episodes, actions sent, holds, a pause, an open breaker)
 * stays: it can only hold.
 */
export function bindJournalToService(context: ServiceDeps): void {
  const { remediationState, log } = context;
  const { records } = remediationState;
  const service = serviceUrlOf(context.serviceUrl);
  const before = records.fact(SERVICE_FACT);
  if (before === service) return;
  remediationState.runBatched(() => {
    if (before !== null) {
      const detail = `service.base_url changed from ${before} to ${service}`;
      log.warn({ before, service }, "service changed: timers, episodes and approvals of the previous one end");
      closeEverything(context, detail);
    }
    remediationState.record([{ kind: "fact", key: SERVICE_FACT, value: service }]);
  });
}

function closeEverything(context: ServiceDeps, detail: string): void {
  const { remediationState, policies } = context;
  const { records } = remediationState;
  const changes: JournalChange[] = [...FACTS_OF_SERVICE, ...policies.all.map(({ rule }) => canaryFactKey(rule.name))]
    .filter((key) => records.fact(key) !== null)
    .map((key) => ({ kind: "fact", key, value: null }));
  for (const policy of records.policiesWithTimers()) {
    for (const node of [...records.timersOf(policy).keys()]) {
      records.setTimer(policy, node, INACTIVE);
      changes.push({ kind: "timer_gone", policy, node });
    }
  }
  remediationState.record(changes);
  for (const episode of records.openEpisodes()) {
    const live = records.actionsOf(episode.id).filter(isUnfinished);
    const ends = live.map((action) => actionChange(closedTimers(action, detail, remediationState.now())));
    commitTransition(context, episode, withdrawEpisode(episode, remediationState.now()), ends);
  }
}

function closedTimers(action: Action, detail: string, endedAt: number): Action {
  if (isInFlight(action)) {
    const outcome = action.shadow ? "dry_run" : "in_doubt";
    return { ...action, state: "ended", outcome, endedAt, detail, sentAt: action.sentAt ?? endedAt };
  }
  return { ...action, state: action.state === "intended" ? "withdrawn" : "lapsed", endedAt, detail };
}

/** One text for all spellings of a base URL. */
function serviceUrlOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname.replace(/\/+$/, "")}`;
}
