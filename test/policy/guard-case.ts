import { HOUR_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Blocker } from "../../src/model/remediation/decision.ts";
import type { Action, Episode, NodeHold, TimerRow } from "../../src/model/remediation/episode.ts";
import type { PolicyRule } from "../../src/model/policy/policy.ts";
import type { Safety } from "../../src/model/policy/safety.ts";
import { CLOSED_BREAKER } from "../../src/policy/guards/storm-and-breaker.ts";
import type { Candidate } from "../../src/policy/candidate.ts";
import { createCasebook } from "../../src/policy/remediation-state.ts";
import { type ActivePolicy, type Facts, isUnderWay, type NodeSight, surveyFleet } from "../../src/policy/facts.ts";
import { nodeLimits } from "../../src/policy/guards/limits.ts";
import { compilePolicy } from "../../src/policy/policy.ts";
import type { Timer } from "../../src/policy/timers/timer.ts";
import type { Judgement, Verdict } from "../../src/policy/timers/verdict.ts";
import { rebootOffline, usualSafety } from "../harness/policies.ts";
import { fleetOf, type NodeSketch } from "../metrics/snapshot-fixtures.ts";
import { episodeOf } from "../journal/arbitrary-changes.ts";

/** Noon, on the journal's clock. */
export const NOON = Date.parse("2026-03-01T12:00:00Z");

/** A policy in force, whose actions were verified before, but for what is said of it. */
export function activeOf(rule: Partial<PolicyRule> = {}, said: Partial<ActivePolicy> = {}): ActivePolicy {
  return { policy: compilePolicy(rebootOffline(rule)), mode: "enforce", fallen: false, proven: true, ...said };
}

/** A node as guards see it: offline, in the region r-0 of DE. */
export const sightOf = (said: Partial<NodeSight> = {}): NodeSight => ({
  id: "node_0",
  status: "offline",
  country: "DE",
  region: "r-0",
  protected: "false",
  ...said,
});

/** A timer that has fired for a while. */
export const firingTimer = (since: number = NOON - HOUR_MS): Timer => ({
  state: "firing",
  trueMs: HOUR_MS,
  clearMs: 0,
  since,
  last: null,
  unknownSince: null,
});

/** A timer of the journal, firing. */
export const timerRow = (node: string, said: Partial<TimerRow> = {}): TimerRow => ({
  policy: "reboot-offline",
  node,
  state: "firing",
  trueMs: HOUR_MS,
  clearMs: 0,
  since: NOON - HOUR_MS,
  ...said,
});

/** A judgement by its verdict. */
export const judgementOf = (verdict: Verdict): Judgement => ({
  verdict,
  unknowns: verdict === "unknown" ? [{ field: "node.status", why: "stale" }] : [],
  at: 0,
  newest: 0,
  matched: true,
  fields: () => ({ "node.status": "offline" }),
});

/** A candidate that nothing speaks against, but for what is said of it. */
export const candidateOf = (said: Partial<Candidate> = {}): Candidate => ({
  active: activeOf(),
  node: sightOf(),
  timer: firingTimer(),
  episode: null,
  judgement: judgementOf("true"),
  observedAt: NOON - SECOND_MS,
  approved: false,
  ...said,
});

/** What a case is made of, beside what is said of the facts themselves. */
export interface CaseSaid {
  readonly nodes?: readonly NodeSketch[];
  readonly timers?: readonly TimerRow[];
  readonly episodes?: readonly Episode[];
  readonly actions?: readonly Action[];
  readonly holds?: readonly NodeHold[];
  readonly policies?: readonly ActivePolicy[];
  readonly safety?: Partial<Safety>;
  readonly facts?: Partial<Facts>;
}

/** Twenty nodes in each of five regions, all online but the first. */
export const hundredNodes: readonly NodeSketch[] = Array.from({ length: 100 }, (_, index) => ({
  id: `node_${index}`,
  status: index === 0 ? "offline" : "online",
  country: index % 5 < 3 ? "DE" : "FR",
  region: `r-${index % 5}`,
}));

/** The facts of a case: of a hundred nodes, and without anything that holds a node, but for what is said. */
export function factsOf(said: CaseSaid = {}): Facts {
  const { timers = [], episodes = [], actions = [], holds = [], policies = [activeOf()] } = said;
  const safety = { ...usualSafety, ...said.safety };
  const shadow = said.facts?.shadow ?? false;
  const casebook = createCasebook({ timers, episodes, actions, holds, facts: new Map(), lastNumber: 0 });
  const survey = surveyFleet(fleetOf(said.nodes ?? hundredNodes), casebook, policies, shadow);
  return {
    now: NOON,
    instants: [NOON],
    shadow,
    safety,
    limits: nodeLimits(safety, survey.nodes),
    survey,
    casebook,
    paused: null,
    journal: null,
    credentials: null,
    trust: [],
    storm: null,
    breaker: CLOSED_BREAKER,
    incidents: [],
    inFlight: actions.filter((action) => action.shadow === shadow && isUnderWay(action)),
    actedAt: [],
    assumedActions: 0,
    closed: () => [],
    canary: () => null,
    ...said.facts,
  };
}

/** Blockers as text: `reason: detail`. */
export const texts = (blockers: readonly Blocker[]): readonly string[] =>
  blockers.map(({ reason, detail }) => `${reason}: ${detail}`);

/** An open episode of the candidate. */
export const openEpisode = (said: Partial<Episode> = {}): Episode =>
  episodeOf(1, { node: "node_0", openedAt: NOON - HOUR_MS, ...said });
