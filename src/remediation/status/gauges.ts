import type { Steps } from "../../base/steps.ts";
import { EPISODE_STATES } from "../../model/label-values.ts";
import { ACTION_KINDS, MODES } from "../../model/policy/policy.ts";
import { ACTION_OUTCOMES, type Episode, type OPEN_STATES } from "../../model/remediation/episode.ts";
import type { EpisodeContext } from "../context.ts";
import type { LastDecision } from "../evaluation/action-planner.ts";
import type { RemediationState } from "../state/journaled-state.ts";
import { setHoldGauges } from "./node-status.ts";
import type { RemediationView } from "./views.ts";

type GaugeDeps = Pick<EpisodeContext, "metrics" | "policies" | "remediationState">;

/**
 * Maximum number of series of `proxywarden_node_episode`. Limits keep episodes beyond firing far below it, but an
 * outage of a region may open thousands of episodes. `proxywarden_episodes` counts them all.
 */
export const EPISODE_SERIES_MAX = 1_000;

/** Sets all gauges of remediation, in steps. */
export function* setGauges(
  context: GaugeDeps,
  view: RemediationView,
  lastDecisions: Iterable<LastDecision>,
): Steps<void> {
  const { metrics } = context;
  const status = view.status();
  metrics.set("proxywarden_trusted", {}, status.trust.length === 0 ? 1 : 0);
  metrics.set("proxywarden_paused", {}, status.paused === null ? 0 : 1);
  metrics.set("proxywarden_breaker_open", {}, status.breaker === null ? 0 : 1);
  metrics.set("proxywarden_journal_writable", {}, status.journal === null ? 1 : 0);
  metrics.set("proxywarden_approvals_waiting", {}, view.approvals().length);
  // A reload may have removed limits.
  metrics.clear("proxywarden_limit_nodes");
  for (const [limit, nodes] of Object.entries(status.limits ?? {}))
    metrics.set("proxywarden_limit_nodes", { limit }, nodes);
  for (const { policy: compiled, mode, hasFallenBack, matched, unknown, episodes } of yield* view.policies()) {
    const policy = compiled.spec.name;
    metrics.set("proxywarden_policy_ineffective", { policy }, hasFallenBack ? 1 : 0);
    metrics.set("proxywarden_policy_matched_nodes", { policy }, matched?.nodes ?? Number.NaN);
    metrics.set("proxywarden_policy_unknown_nodes", { policy }, unknown ?? Number.NaN);
    for (const state of EPISODE_STATES) metrics.set("proxywarden_episodes", { policy, state }, episodes[state] ?? 0);
    for (const value of MODES) metrics.set("proxywarden_policy_mode", { policy, mode: value }, value === mode ? 1 : 0);
  }
  yield;
  setEpisodeGauge(context);
  yield* setHoldGauges(context, lastDecisions);
}

/** Sets the series of open episodes, at most {@link EPISODE_SERIES_MAX}, starting with those beyond firing. */
export function setEpisodeGauge({
  metrics,
  remediationState: { records },
}: Pick<GaugeDeps, "metrics"> & { readonly remediationState: Pick<RemediationState, "records"> }): void {
  const isFiring = ({ state }: Episode) => state === "firing";
  const open = records.openEpisodes();
  const ordered = [...open.filter((episode) => !isFiring(episode)), ...open.filter(isFiring)];
  metrics.clear("proxywarden_node_episode");
  for (const { id, node, policy, state } of ordered.slice(0, EPISODE_SERIES_MAX)) {
    const lastSent = records.actionsOf(id).findLast(({ sentAt }) => sentAt !== null);
    const openState = state as (typeof OPEN_STATES)[number];
    const labels = { node_id: node, policy, state: openState, action: lastSent?.request.kind ?? "none" } as const;
    metrics.set("proxywarden_node_episode", labels, 1);
  }
}

/** Initializes counters of each policy at 0, so that `increase()` counts their first increment. */
export function initializeCounters({ metrics, policies }: GaugeDeps): void {
  for (const { spec } of policies.all) {
    const policy = spec.name;
    metrics.inc("proxywarden_decisions_total", { policy, verdict: "act", reason: "all_clear" }, 0);
    const kinds = ACTION_KINDS.filter((kind) => spec.steps.some(({ action }) => action === kind));
    for (const action of kinds)
      for (const outcome of ACTION_OUTCOMES) metrics.inc("proxywarden_actions_total", { policy, action, outcome }, 0);
  }
}
