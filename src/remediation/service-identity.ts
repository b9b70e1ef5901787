import type { Action } from "../model/remediation/episode.ts";
import type { Change } from "../model/remediation/journal.ts";
import { isLive } from "../policy/remediation-state.ts";
import { isUnderWay } from "../policy/facts.ts";
import { withdrawn } from "../policy/episodes/episode.ts";
import { INACTIVE } from "../policy/timers/timer.ts";
import { INCIDENTS } from "./evaluation/incidents.ts";
import { ACCEPTED_MISSING, BASELINE } from "./evaluation/inventory-trust.ts";
import { STORM } from "./evaluation/fleet-health.ts";
import { noteAction, settle } from "./execution/episode-transitions.ts";
import { provenFact, type Ward } from "./context.ts";

/** The fact that says which service the journal is about: its base URL. */
const SERVICE = "warden.service";

/** Facts about a fleet that say nothing about another one. */
const FLEET_FACTS: readonly string[] = [BASELINE, ACCEPTED_MISSING, STORM, INCIDENTS];

/**
 * Makes the journal one of the service that is configured. Where it was another's, everything that was open there ends:
 * nodes of equal ids are other nodes. What limits actions (closed episodes, actions sent, holds, a pause, an open breaker)
 * stays: it can only hold.
 */
export function adoptService(ward: Ward): void {
  const { books, log } = ward;
  const { casebook } = books;
  const service = identityOf(ward.serviceUrl);
  const before = casebook.fact(SERVICE);
  if (before === service) return;
  books.batch(() => {
    if (before !== null) {
      const detail = `service.base_url changed from ${before} to ${service}`;
      log.warn({ before, service }, "another service: timers, episodes and approvals of the one before end");
      endAll(ward, detail);
    }
    books.record([{ kind: "fact", key: SERVICE, value: service }]);
  });
}

function endAll(ward: Ward, detail: string): void {
  const { books, policies } = ward;
  const { casebook } = books;
  const changes: Change[] = [...FLEET_FACTS, ...policies.map(({ rule }) => provenFact(rule.name))]
    .filter((key) => casebook.fact(key) !== null)
    .map((key) => ({ kind: "fact", key, value: null }));
  for (const policy of casebook.timedPolicies()) {
    for (const node of [...casebook.timersOf(policy).keys()]) {
      casebook.setTimer(policy, node, INACTIVE);
      changes.push({ kind: "timer_gone", policy, node });
    }
  }
  books.record(changes);
  for (const episode of casebook.openEpisodes()) {
    const live = casebook.actionsOf(episode.id).filter(isLive);
    const ends = live.map((action) => noteAction(ended(action, detail, books.now())));
    settle(ward, episode, withdrawn(episode, books.now()), ends);
  }
}

function ended(action: Action, detail: string, endedAt: number): Action {
  if (isUnderWay(action)) {
    const outcome = action.shadow ? "dry_run" : "in_doubt";
    return { ...action, state: "ended", outcome, endedAt, detail, sentAt: action.sentAt ?? endedAt };
  }
  return { ...action, state: action.state === "intended" ? "withdrawn" : "lapsed", endedAt, detail };
}

/** One text for all spellings of a base URL. */
function identityOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname.replace(/\/+$/, "")}`;
}
