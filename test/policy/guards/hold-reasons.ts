import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { HoldReason } from "../../../src/model/remediation/decision.ts";
import type { Episode } from "../../../src/model/remediation/episode.ts";
import type { PolicyRule } from "../../../src/model/policy/policy.ts";
import { CLOSED_BREAKER } from "../../../src/policy/guards/storm-and-breaker.ts";
import type { Candidate } from "../../../src/policy/candidate.ts";
import type { ActivePolicy, Facts, NodeSight } from "../../../src/policy/facts.ts";
import { actionOf, closedEpisodeOf, episodeOf, holdOf } from "../../journal/arbitrary-changes.ts";
import {
  activeOf,
  type CaseSaid,
  candidateOf,
  factsOf,
  firingTimer,
  judgementOf,
  NOON,
  openEpisode,
  sightOf,
} from "../guard-case.ts";

/** Something that speaks against a candidate, as a change of a case that nothing speaks against. */
export interface Cause {
  readonly said?: CaseSaid;
  readonly active?: Partial<ActivePolicy>;
  readonly node?: Partial<NodeSight>;
  readonly episode?: Partial<Episode>;
  readonly candidate?: Partial<Candidate>;
}

const facts = (changed: Partial<Facts>): Cause => ({ said: { facts: changed } });
const trust = (reason: HoldReason): Cause => facts({ trust: [{ reason, detail: "…" }] });
const past = (number: number, agoMs: number, said: Partial<Episode>): Episode =>
  closedEpisodeOf(number, NOON - agoMs, { node: "node_0", acted: 1, ...said });

/** Every reason: what alone brings it about. */
export const causes: Readonly<Record<HoldReason, Cause>> = {
  paused: facts({ paused: "since noon: a release" }),
  journal: facts({ journal: "the disk is full" }),
  credentials: facts({ credentials: "403" }),
  warming_up: trust("warming_up"),
  inventory_incomplete: trust("inventory_incomplete"),
  inventory_shrunk: trust("inventory_shrunk"),
  inventory_unknown: trust("inventory_unknown"),
  last_seen_stale: trust("last_seen_stale"),
  service_clock: trust("service_clock"),
  sight_cooldown: trust("sight_cooldown"),
  verdict_unknown: { candidate: { judgement: judgementOf("unknown") } },
  window: facts({ closed: () => [{ reason: "window", detail: "…" }] }),
  blocked_by: facts({ closed: () => [{ reason: "blocked_by", detail: "…" }] }),
  approval: { active: { mode: "approve" } },
  rejected: {
    active: { mode: "approve" },
    episode: {},
    said: { actions: [actionOf(50, "ep-1", { node: "node_0", state: "rejected", sentAt: null, detail: null })] },
  },
  canary: {
    active: { proven: false },
    said: { facts: { canary: () => episodeOf(60, { node: "node_7", state: "firing", acted: 1 }) } },
  },
  protected: { node: { protected: "true" } },
  held: { said: { holds: [holdOf("node_0")] } },
  status: { node: { status: "maintenance" } },
  ownership: { node: { status: "quarantined" } },
  vetoed: {
    said: { holds: [holdOf("node_0", { kind: "vetoed", policy: "reboot-offline", until: NOON + HOUR_MS })] },
  },
  other_episode: { said: { episodes: [episodeOf(70, { node: "node_0", policy: "another" })] } },
  cooldown: { said: { episodes: [past(71, MINUTE_MS, { policy: "another" })] } },
  retry_wait: { said: { episodes: [past(72, HOUR_MS, { state: "given_up" })] } },
  retry_limit: { said: { episodes: [past(73, 9 * HOUR_MS, {}), past(74, 8 * HOUR_MS, {})] } },
  backoff: { episode: { failures: 1, retryAt: NOON + 1 } },
  storm: { said: { safety: { maxUnhealthy: { share: 0 } } } },
  storm_cooldown: facts({ storm: { since: 0, until: NOON + 1, blowing: false } }),
  correlated: facts({
    incidents: [
      { place: "r-0", from: NOON - HOUR_MS, to: NOON - HOUR_MS, nodes: new Set(["node_0"]), until: NOON + 1 },
    ],
  }),
  breaker: facts({ breaker: { ...CLOSED_BREAKER, open: { openedAt: NOON, nodes: 11 } } }),
  in_flight: facts({ inFlight: [actionOf(80, "ep-80", { state: "sent", endedAt: null })] }),
  disrupted: { said: { safety: { maxDisrupted: { share: 1, amount: 0 } } } },
  disrupted_domain: { said: { safety: { maxDisruptedPer: { region: 0, country: null } } } },
  min_online: { node: { status: "online" }, said: { safety: { minOnlinePer: { region: 99, country: null } } } },
  max_actions: { said: { safety: { maxActions: { amount: 0, perMs: HOUR_MS } } } },
};

/** A reason that has a cause here. */
export type Reason = keyof typeof causes;

/** All of them, in the order in which they are listed. */
export const reasons = Object.keys(causes) as readonly Reason[];

/** Reasons of which a node can have but one: it has one status, one verdict of a person, one weather, one trust. */
export const alternatives: readonly (readonly Reason[])[] = [
  ["approval", "rejected"],
  ["storm", "storm_cooldown"],
  ["status", "ownership", "min_online"],
  ["window", "blocked_by"],
  reasons.filter((reason) => causes[reason].said?.facts?.trust !== undefined),
];

/** The case that has all of some causes. */
export function caseOf(
  all: readonly Reason[],
  rule: Partial<PolicyRule> = {},
): { readonly candidate: Candidate; readonly facts: Facts } {
  const chosen = all.map((reason): Cause => causes[reason]);
  const said = chosen.map((cause) => cause.said ?? {});
  const merged = <T extends object>(parts: readonly (T | undefined)[]): T => Object.assign({}, ...parts) as T;
  const active = activeOf(rule, merged(chosen.map((cause) => cause.active)));
  const hasEpisode = chosen.some(({ episode }) => episode !== undefined);
  const episode = hasEpisode ? openEpisode(merged(chosen.map((cause) => cause.episode))) : null;
  return {
    candidate: candidateOf({
      active,
      node: sightOf(merged(chosen.map((cause) => cause.node))),
      timer: firingTimer(),
      episode,
      ...merged(chosen.map((cause) => cause.candidate)),
    }),
    facts: factsOf({
      policies: [active],
      episodes: said.flatMap(({ episodes = [] }) => episodes),
      actions: said.flatMap(({ actions = [] }) => actions),
      holds: said.flatMap(({ holds = [] }) => holds),
      safety: merged(said.map(({ safety }) => safety)),
      facts: merged(said.map((each) => each.facts)),
    }),
  };
}
