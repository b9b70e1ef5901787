import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PolicySpec } from "../../../src/config/schema/policy.ts";
import type { TrustBlocker } from "../../../src/inventory/trust.ts";
import type { Episode } from "../../../src/model/remediation/episode.ts";
import type { HoldReason } from "../../../src/policy/decision.ts";
import type { Candidate, GuardFacts, NodeObservation } from "../../../src/policy/guards/guard-types.ts";
import { CLOSED_BREAKER } from "../../../src/policy/guards/storm-and-breaker.ts";
import type { ActivePolicy } from "../../../src/policy/policy.ts";
import { actionOf, closedEpisodeOf, episodeOf, holdOf } from "../../journal/arbitrary-changes.ts";
import {
  activePolicy,
  buildCandidate,
  buildEvaluation,
  buildFacts,
  buildObservation,
  firingTimer,
  type GuardCaseOptions,
  NOON,
  openEpisode,
} from "../guard-case.ts";

/** Something that speaks against a candidate, as a change of a case that nothing speaks against. */
export interface HoldCause {
  readonly options?: GuardCaseOptions;
  readonly active?: Partial<ActivePolicy>;
  readonly node?: Partial<NodeObservation>;
  readonly episode?: Partial<Episode>;
  readonly candidate?: Partial<Candidate>;
}

const factsCause = (changed: Partial<GuardFacts>): HoldCause => ({ options: { facts: changed } });
const trustCause = (reason: TrustBlocker["reason"]): HoldCause =>
  factsCause({ trustBlockers: [{ reason, detail: "…" }] });
const closedEpisode = (number: number, agoMs: number, overrides: Partial<Episode>): Episode =>
  closedEpisodeOf(number, NOON - agoMs, { node: "node_0", acted: 1, ...overrides });

/** Every reason: what alone brings it about. */
export const HOLD_CAUSES: Readonly<Record<HoldReason, HoldCause>> = {
  paused: factsCause({ pauseDetail: "since noon: a release" }),
  journal: factsCause({ journalError: "the journal can't be written: the disk is full" }),
  credentials: factsCause({ credentialsError: "403" }),
  warming_up: trustCause("warming_up"),
  inventory_incomplete: trustCause("inventory_incomplete"),
  inventory_shrunk: trustCause("inventory_shrunk"),
  inventory_unknown: trustCause("inventory_unknown"),
  last_seen_stale: trustCause("last_seen_stale"),
  service_clock: trustCause("service_clock"),
  sight_cooldown: trustCause("sight_cooldown"),
  verdict_unknown: { candidate: { evaluation: buildEvaluation("unknown") } },
  window: factsCause({ policyBlockers: () => [{ reason: "window", detail: "…" }] }),
  blocked_by: factsCause({ policyBlockers: () => [{ reason: "blocked_by", detail: "…" }] }),
  approval: { active: { mode: "approve" } },
  rejected: {
    active: { mode: "approve" },
    episode: {},
    options: { actions: [actionOf(50, "ep-1", { node: "node_0", state: "rejected", sentAt: null, detail: null })] },
  },
  canary: {
    active: { proven: false },
    options: { facts: { canaryEpisode: () => episodeOf(60, { node: "node_7", state: "firing", acted: 1 }) } },
  },
  protected: { node: { protected: "true" } },
  held: { options: { holds: [holdOf("node_0")] } },
  status: { node: { status: "maintenance" } },
  ownership: { node: { status: "quarantined" } },
  vetoed: {
    options: { holds: [holdOf("node_0", { kind: "vetoed", policy: "reboot-offline", until: NOON + HOUR_MS })] },
  },
  other_episode: { options: { episodes: [episodeOf(70, { node: "node_0", policy: "another" })] } },
  cooldown: { options: { episodes: [closedEpisode(71, MINUTE_MS, { policy: "another" })] } },
  retry_wait: { options: { episodes: [closedEpisode(72, HOUR_MS, { state: "given_up" })] } },
  retry_limit: { options: { episodes: [closedEpisode(73, 9 * HOUR_MS, {}), closedEpisode(74, 8 * HOUR_MS, {})] } },
  backoff: { episode: { failures: 1, retryAt: NOON + 1 } },
  storm: { options: { safety: { maxUnhealthy: { share: 0 } } } },
  storm_cooldown: factsCause({ storm: { since: 0, until: NOON + 1, isActive: false } }),
  correlated: factsCause({
    incidents: [
      { domain: "r-0", from: NOON - HOUR_MS, to: NOON - HOUR_MS, nodes: new Set(["node_0"]), until: NOON + 1 },
    ],
  }),
  breaker: factsCause({ breaker: { ...CLOSED_BREAKER, open: { openedAt: NOON, nodes: 11 } } }),
  in_flight: factsCause({ inFlight: [actionOf(80, "ep-80", { state: "sent", endedAt: null })] }),
  disrupted: { options: { safety: { maxDisrupted: { share: 1, amount: 0 } } } },
  disrupted_domain: { options: { safety: { maxDisruptedPer: { region: 0, country: null } } } },
  min_online: { node: { status: "online" }, options: { safety: { minOnlinePer: { region: 99, country: null } } } },
  max_actions: { options: { safety: { maxActions: { amount: 0, perMs: HOUR_MS } } } },
};

/** A reason that has a cause here. */
export type Reason = keyof typeof HOLD_CAUSES;

/** All reasons in the order in which they are listed. */
export const CAUSED_REASONS = Object.keys(HOLD_CAUSES) as readonly Reason[];

/** Groups of reasons that exclude each other, for example because a node has one status. */
export const EXCLUSIVE_REASONS: readonly (readonly Reason[])[] = [
  ["approval", "rejected"],
  ["storm", "storm_cooldown"],
  ["status", "ownership", "min_online"],
  ["window", "blocked_by"],
  CAUSED_REASONS.filter((reason) => HOLD_CAUSES[reason].options?.facts?.trustBlockers !== undefined),
];

/** The case that has all of some causes. */
export function guardCase(
  all: readonly Reason[],
  spec: Partial<PolicySpec> = {},
): { readonly candidate: Candidate; readonly facts: GuardFacts } {
  const chosen = all.map((reason): HoldCause => HOLD_CAUSES[reason]);
  const overrides = chosen.map((cause) => cause.options ?? {});
  const merged = <T extends object>(parts: readonly (T | undefined)[]): T => Object.assign({}, ...parts) as T;
  const active = activePolicy(spec, merged(chosen.map((cause) => cause.active)));
  const hasEpisode = chosen.some(({ episode }) => episode !== undefined);
  const episode = hasEpisode ? openEpisode(merged(chosen.map((cause) => cause.episode))) : null;
  return {
    candidate: buildCandidate({
      active,
      node: buildObservation(merged(chosen.map((cause) => cause.node))),
      timer: firingTimer(),
      episode,
      ...merged(chosen.map((cause) => cause.candidate)),
    }),
    facts: buildFacts({
      policies: [active],
      episodes: overrides.flatMap(({ episodes = [] }) => episodes),
      actions: overrides.flatMap(({ actions = [] }) => actions),
      holds: overrides.flatMap(({ holds = [] }) => holds),
      safety: merged(overrides.map(({ safety }) => safety)),
      facts: merged(overrides.map((override) => override.facts)),
    }),
  };
}
