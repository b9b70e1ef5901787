import { HOUR_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { PolicySpec } from "../../src/config/schema/policy.ts";
import type { Safety } from "../../src/config/schema/safety.ts";
import type { Action, Blocker, Episode, NodeHold, Quarantine, TimerRow } from "../../src/model/remediation/episode.ts";
import { isInFlight } from "../../src/policy/episodes/attempts.ts";
import type { PolicyEvaluation, Verdict } from "../../src/policy/evaluation.ts";
import { countFleet } from "../../src/policy/fleet-counts.ts";
import type { Candidate, GuardFacts, GuardRow, NodeObservation } from "../../src/policy/guards/guard-types.ts";
import { effectiveLimits } from "../../src/policy/guards/safety-limits.ts";
import { CLOSED_BREAKER } from "../../src/policy/guards/storm-and-breaker.ts";
import { type ActivePolicy, compilePolicy } from "../../src/policy/policy.ts";
import { RemediationRecords } from "../../src/policy/remediation-records.ts";
import type { Timer } from "../../src/policy/timer.ts";
import { defaultSafety, rebootOffline } from "../harness/policies.ts";
import { episodeOf } from "../journal/arbitrary-changes.ts";
import { buildFleet, type NodeFixture } from "../metrics/snapshot-fixtures.ts";

/** Noon, on the journal's clock. */
export const NOON = Date.parse("2026-03-01T12:00:00Z");

/** Returns a quarantine of ours that the list shows, and that ends in two hours. */
export const quarantineOf = (overrides: Partial<Quarantine> = {}): Quarantine => ({
  action: "act-3",
  endsAt: NOON + 2 * HOUR_MS,
  seen: true,
  seenOnline: 0,
  overdue: false,
  ...overrides,
});

/** An active policy that is proven. */
export function activePolicy(spec: Partial<PolicySpec> = {}, overrides: Partial<ActivePolicy> = {}): ActivePolicy {
  return {
    policy: compilePolicy(rebootOffline(spec)),
    mode: "enforce",
    hasFallenBack: false,
    proven: true,
    ...overrides,
  };
}

/** An offline node in the region r-0 of DE. */
export const buildObservation = (overrides: Partial<NodeObservation> = {}): NodeObservation => ({
  id: "node_0",
  status: "offline",
  country: "DE",
  region: "r-0",
  protected: "false",
  ...overrides,
});

/** A timer that has been firing since `since`. */
export const firingTimer = (since: number = NOON - HOUR_MS): Timer => ({
  state: "firing",
  trueMs: HOUR_MS,
  clearMs: 0,
  since,
  last: null,
  unknownSince: null,
});

/** The journal row of a firing timer. */
export const timerRow = (node: string, overrides: Partial<TimerRow> = {}): TimerRow => ({
  policy: "reboot-offline",
  node,
  state: "firing",
  trueMs: HOUR_MS,
  clearMs: 0,
  since: NOON - HOUR_MS,
  ...overrides,
});

/** An evaluation with this verdict. */
export const buildEvaluation = (verdict: Verdict): PolicyEvaluation => ({
  verdict,
  unknowns: verdict === "unknown" ? [{ field: "node.status", why: "stale" }] : [],
  at: 0,
  newest: 0,
  matched: true,
  fields: () => ({ "node.status": "offline" }),
});

/** A candidate that no guard holds. */
export const buildCandidate = (overrides: Partial<Candidate> = {}): Candidate => ({
  active: activePolicy(),
  node: buildObservation(),
  timer: firingTimer(),
  episode: null,
  evaluation: buildEvaluation("true"),
  observedAt: NOON - SECOND_MS,
  approved: false,
  ...overrides,
});

/** The inputs from which facts are built, and overrides of the facts. */
export interface GuardCaseOptions {
  readonly nodes?: readonly NodeFixture[];
  readonly timers?: readonly TimerRow[];
  readonly episodes?: readonly Episode[];
  readonly actions?: readonly Action[];
  readonly holds?: readonly NodeHold[];
  readonly policies?: readonly ActivePolicy[];
  readonly safety?: Partial<Safety>;
  readonly facts?: Partial<GuardFacts>;
}

/** Twenty nodes in each of five regions, all online except the first. */
export const hundredNodes: readonly NodeFixture[] = Array.from({ length: 100 }, (_, index) => ({
  id: `node_${index}`,
  status: index === 0 ? "offline" : "online",
  country: index % 5 < 3 ? "DE" : "FR",
  region: `r-${index % 5}`,
}));

/** Facts about a hundred nodes that hold no node. */
export function buildFacts(overrides: GuardCaseOptions = {}): GuardFacts {
  const { timers = [], episodes = [], actions = [], holds = [], policies = [activePolicy()] } = overrides;
  const safety = { ...defaultSafety, ...overrides.safety };
  const records = new RemediationRecords({ timers, episodes, actions, holds, facts: new Map(), lastNumber: 0 });
  const fleetCounts = countFleet(buildFleet(overrides.nodes ?? hundredNodes), records, policies, false, NOON);
  return {
    now: NOON,
    safety,
    limits: effectiveLimits(safety, fleetCounts.nodes),
    fleetCounts,
    records,
    nameOf: (node) => node,
    pauseDetail: null,
    journalError: null,
    credentialsError: null,
    trustBlockers: [],
    storm: null,
    breaker: CLOSED_BREAKER,
    incidents: [],
    inFlight: actions.filter((action) => !action.dryRun && isInFlight(action)),
    sentAtTimes: [],
    assumedActionCount: 0,
    policyBlockers: () => [],
    canaryEpisode: () => null,
    ...overrides.facts,
  };
}

/** Blockers as `reason: detail`. */
export const blockerTexts = (blockers: readonly Blocker[]): readonly string[] =>
  blockers.map(({ reason, detail }) => `${reason}: ${detail}`);

/** An open episode of the candidate. */
export const openEpisode = (overrides: Partial<Episode> = {}): Episode =>
  episodeOf(1, { node: "node_0", openedAt: NOON - HOUR_MS, ...overrides });

/** Returns the blockers of a guard for a candidate and facts, as texts. */
export const blockersOfGuard = (guard: GuardRow, candidate: Partial<Candidate> = {}, facts: GuardCaseOptions = {}) =>
  blockerTexts(guard.check(buildCandidate(candidate), buildFacts(facts)));
