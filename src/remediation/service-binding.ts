import { FAILED_SESSIONS_LISTED_FACT } from "../collectors/collected-state.ts";
import { NETWORK_SIZE_FACT } from "../collectors/polling-plan.ts";
import type { PolicySpec } from "../config/schema/policy.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import { INACTIVE } from "../policy/timer.ts";
import type { EpisodeContext, RemediationContext } from "./context.ts";
import { STORM_FACT } from "./evaluation/fleet-health.ts";
import { INCIDENTS_FACT } from "./evaluation/incidents.ts";
import { ACCEPTED_MISSING_FACT, ACCEPTED_SESSIONS_FACT, BASELINE_FACT } from "./evaluation/inventory-trust.ts";
import { withdraw } from "./execution/episode-transitions.ts";
import { canaryFactKey } from "./policy-set.ts";
import { CHANGING_CREATED_AT_FACT, CreatedAtChanges } from "./state/created-at-changes.ts";
import type { RemediationState } from "./state/journaled-state.ts";

/** Key of the fact that holds the base URL of the service that the journal belongs to. */
const SERVICE_FACT = "remediation.service";

/** Facts that apply only to the network of one service. */
const FACTS_OF_SERVICE: readonly string[] = [
  NETWORK_SIZE_FACT,
  FAILED_SESSIONS_LISTED_FACT,
  CHANGING_CREATED_AT_FACT,
  BASELINE_FACT,
  ACCEPTED_MISSING_FACT,
  ACCEPTED_SESSIONS_FACT,
  STORM_FACT,
  INCIDENTS_FACT,
];

/** Returns whether the journal belongs to another service. */
export function isOfOtherService({ records }: RemediationState, serviceUrl: string): boolean {
  const known = records.fact(SERVICE_FACT);
  return known !== null && known !== canonicalUrl(serviceUrl);
}

/**
 * Deletes what the journal holds about the network of another service. Call it before the collectors start, since they
 * would compare their walks with those of the other service.
 */
export function forgetOtherService(
  remediationState: RemediationState,
  policies: readonly PolicySpec[],
  serviceUrl: string,
): void {
  const { records } = remediationState;
  if (!isOfOtherService(remediationState, serviceUrl)) return;
  const keys = [...FACTS_OF_SERVICE, ...policies.map(({ name }) => canaryFactKey(name))];
  const known = keys.filter((key) => records.fact(key) !== null);
  remediationState.record(known.map((key) => ({ kind: "fact", key, value: null })));
}

/**
 * Binds the journal to the configured service. If it was bound to another one, timers, open episodes and approvals end,
 * because nodes with the same ids are other nodes. What limits actions (closed episodes, sent actions, holds, a pause,
 * an open breaker) stays, because it can only prevent actions. Call {@link forgetOtherService} before.
 */
export function bindJournalToService(context: EpisodeContext & Pick<RemediationContext, "serviceUrl">): void {
  const { remediationState, serviceUrl, log } = context;
  const { records } = remediationState;
  const service = canonicalUrl(serviceUrl);
  const previous = records.fact(SERVICE_FACT);
  if (previous === service) return;
  remediationState.runBatched(() => {
    if (previous !== null) {
      const detail = `service.base_url changed from ${previous} to ${service}`;
      log.warn({ previous, service }, "service changed: timers, episodes and approvals of the previous one end");
      endTimersAndEpisodes(context, detail);
    }
    remediationState.record([{ kind: "fact", key: SERVICE_FACT, value: service }]);
  });
}

function endTimersAndEpisodes(context: EpisodeContext, detail: string): void {
  const { remediationState } = context;
  const { records } = remediationState;
  const changes: JournalChange[] = [];
  for (const policy of records.policiesWithTimers())
    for (const node of [...records.timersOf(policy).keys()]) changes.push(records.setTimer(policy, node, INACTIVE));
  remediationState.record(changes);
  remediationState.lastHealthy.clear();
  remediationState.identities = { compared: null, replaced: new Set(), changes: new CreatedAtChanges() };
  for (const episode of records.openEpisodes()) withdraw(context, episode, detail);
}

/** Returns the same text for all spellings of a base URL. */
function canonicalUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname.replace(/\/+$/, "")}`;
}
