import { describe, expect, test } from "vitest";
import { SECOND_MS } from "../../src/base/duration.ts";
import { type Action, CLOSED_STATES, type Episode, OPEN_STATES } from "../../src/model/remediation/episode.ts";
import {
  canProceed,
  decide,
  findBlockers,
  HOLD_REASONS,
  type HoldReason,
  mayBeginEpisode,
  planAction,
} from "../../src/policy/decision.ts";
import type { Candidate } from "../../src/policy/guards/guard-types.ts";
import { steps } from "../harness/policies.ts";
import { actionOf, decisionOf, episodeOf } from "../journal/arbitrary-changes.ts";
import {
  activePolicy,
  blockerTexts,
  buildCandidate,
  buildEvaluation,
  buildFacts,
  buildObservation,
  firingTimer,
  type GuardCaseOptions,
  NOON,
  openEpisode,
} from "./guard-case.ts";
import { CAUSED_REASONS, guardCase } from "./guards/hold-reasons.ts";

const decisionText = (candidate: Partial<Candidate> = {}, facts: GuardCaseOptions = {}) =>
  blockerTexts(findBlockers(buildCandidate(candidate), buildFacts(facts)));

const NO_BLOCKERS: readonly string[] = [];

describe("a decision", () => {
  test("contains the node, policy, mode, evidence and time", () => {
    const episode = openEpisode({ step: 1, acted: 1 });
    const active = activePolicy({}, { mode: "approve" });
    expect(decide(buildCandidate({ episode, active, approved: true }), buildFacts())).toEqual({
      at: NOON,
      policy: "reboot-offline",
      node: "node_0",
      episode: "ep-1",
      step: 1,
      mode: "approve",
      verdict: "act",
      blockers: [],
      evidence: { fields: { "node.status": "offline" }, observedAt: NOON - SECOND_MS },
    });
    expect(decide(buildCandidate(), buildFacts())).toMatchObject({ episode: null, step: 0, mode: "enforce" });
  });

  test("holds a node whose timer is not firing, that is healthy now, or whose step is in progress", () => {
    const verdict = (candidate: Partial<Candidate>) => decide(buildCandidate(candidate), buildFacts()).verdict;
    expect(verdict({})).toBe("act");
    expect(verdict({ timer: { ...firingTimer(), state: "pending" } })).toBe("hold");
    expect(verdict({ evaluation: buildEvaluation("false") })).toBe("hold");
    for (const state of OPEN_STATES) {
      expect(verdict({ episode: openEpisode({ state }) })).toBe(state === "firing" ? "act" : "hold");
    }
    for (const state of CLOSED_STATES) expect(verdict({ episode: openEpisode({ state }) })).toBe("hold");
  });

  test("holds an episode after its last step, as after a change of the policy", () => {
    const active = activePolicy({ steps: [steps.reboot] });
    const at = (step: number) => decisionText({ active, episode: openEpisode({ step, acted: 1 }) });
    expect(at(0)).toEqual(NO_BLOCKERS);
    expect(at(1)).toEqual(["retry_limit: the episode has taken all 1 steps of the policy: given up"]);
  });
});

describe("the daemon's own state", () => {
  test("holds every node", () => {
    expect(decisionText({}, { facts: { pauseDetail: "since noon: a release" } })).toEqual([
      "paused: since noon: a release",
    ]);
    expect(decisionText({}, { facts: { journalError: "the journal can't be written: disk full" } })).toEqual([
      "journal: the journal can't be written: disk full",
    ]);
    expect(decisionText({}, { facts: { credentialsError: "POST answered 403" } })).toEqual([
      "credentials: POST answered 403",
    ]);
  });

  test("holds every action with the reason credentials after 401 or 403", () => {
    const facts = buildFacts({ facts: { credentialsError: "POST answered 401" } });
    for (const step of [steps.disconnect, steps.reboot, steps.force, steps.quarantine]) {
      expect(decide(buildCandidate({ active: activePolicy({ steps: [step] }) }), facts).verdict).toBe("hold");
    }
  });
});

test("the reason of a quarantine is one line, although its template and `when` have several", () => {
  const reason = "{{policy}}:\n{{when}}\n";
  const when = 'node.status == "offline" // since\n  && node.country == "DE"\n';
  const active = activePolicy({ when, steps: [{ ...steps.quarantine, reason }] });
  const { request } = planAction(buildCandidate({ active, episode: openEpisode() }), "act-1", NOON);
  expect(request).toMatchObject({
    reason: 'reboot-offline: node.status == "offline" // since && node.country == "DE"',
  });
});

test("a notify step is held by unknown data but not by limits on actions", () => {
  const candidate = {
    active: activePolicy({ steps: [steps.notify, steps.reboot] }),
    node: buildObservation({ protected: "true" }),
  };
  const facts: GuardCaseOptions = {
    facts: {
      pauseDetail: "since noon: a release",
      trustBlockers: [{ reason: "warming_up", detail: "1 of 2" }],
      sentAtTimes: [NOON],
    },
    safety: { maxActions: { amount: 1, perMs: SECOND_MS } },
  };
  expect(decisionText(candidate, facts)).toEqual(["warming_up: 1 of 2"]);
  expect(
    decisionText({ ...candidate, episode: openEpisode({ step: 1 }) }, facts).map((text) => text.split(":")[0]),
  ).toEqual([...["paused", "warming_up", "protected", "max_actions"]]);
});

test("an unknown verdict holds the node and names every unknown field", () => {
  const evaluation = {
    ...buildEvaluation("unknown"),
    unknowns: [
      { field: "node.cpu_usage", why: "stale" },
      { field: "the expression", why: "error" },
    ] as const,
  };
  expect(decisionText({ evaluation })).toEqual(["verdict_unknown: node.cpu_usage: stale, the expression: error"]);
});

describe("the mode approve", () => {
  const active = activePolicy({}, { mode: "approve" });
  const asked = (state: Action["state"], more: Partial<Action> = {}) =>
    actionOf(2, "ep-1", { node: "node_0", state, sentAt: null, outcome: null, detail: null, ...more });
  const blockers = (actions: readonly Action[], candidate: Partial<Candidate> = {}) =>
    decisionText({ active, episode: openEpisode({ step: 1 }), ...candidate }, { actions });

  test("holds a step until it is approved", () => {
    expect(blockers([])).toEqual(["approval: approval by an operator is required"]);
    expect(blockers([asked("awaiting", { step: 1 })])).toEqual(["approval: act-2 is waiting for approval"]);
    expect(blockers([asked("awaiting", { step: 0 })])).toEqual(["approval: approval by an operator is required"]);
    expect(blockers([asked("approved", { step: 1 })], { approved: true })).toEqual(NO_BLOCKERS);
  });

  test("does not ask for a rejected step again in the episode", () => {
    const end = '"release node_0" lifts the rejection';
    expect(blockers([asked("rejected", { step: 1 })])).toEqual([`rejected: act-2 was rejected; ${end}`]);
    expect(blockers([asked("rejected", { step: 1, detail: "a person rejected act-2: not on a Friday" })])).toEqual([
      `rejected: a person rejected act-2: not on a Friday; ${end}`,
    ]);
    expect(blockers([asked("rejected", { step: 0 })])).toEqual(["approval: approval by an operator is required"]);
  });

  test("names the last request that expired and the pending one", () => {
    const lapsed = [1, 2].map((number) =>
      actionOf(number, "ep-1", { node: "node_0", state: "lapsed", step: 1, detail: `not approved in time ${number}` }),
    );
    const waiting = asked("awaiting", { id: "act-3", step: 1 });
    expect(blockers(lapsed)).toEqual([
      "approval: approval by an operator is required; act-2 lapsed: not approved in time 2",
    ]);
    expect(blockers([...lapsed, waiting])).toEqual([
      "approval: act-3 is waiting for approval; act-2 lapsed: not approved in time 2",
    ]);
  });

  test("is the only mode that asks for approval", () => {
    for (const mode of ["dry_run", "enforce"] as const)
      expect(blockers([], { active: { ...active, mode } })).toEqual([]);
  });
});

describe("the canary of a changed policy", () => {
  const changed = activePolicy({}, { proven: false });
  const tried = (episode: Partial<Episode>, candidate: Partial<Candidate> = {}, facts: GuardCaseOptions = {}) => {
    const canaryEpisode = () => episodeOf(5, { node: "node_7", ...episode });
    const nameOf = () => "iad-0007";
    return decisionText({ active: changed, ...candidate }, { ...facts, facts: { canaryEpisode, nameOf } });
  };
  const held = "canary: the policy is new or changed, and iad-0007 (ep-5) is the canary";

  test("holds all other nodes and is named once, by its name", () => {
    expect(tried({ state: "acting" })).toEqual([held]);
    expect(tried({ state: "acting" }, { node: buildObservation({ id: "node_7" }) })).toEqual(NO_BLOCKERS);
  });

  test("stays the canary while it is lost, with an action in flight or without", () => {
    const lost = `${held}; it left the list or is down after an action, and stays the canary until it is available again or accept-inventory is run`;
    expect(tried({ state: "suspended", acted: 1, unlistedAt: NOON })).toEqual([lost]);
    expect(tried({ state: "suspended", acted: 1, downSince: NOON })).toEqual([lost]);
  });

  test("is not needed after an action was verified, or if safety.canary is false", () => {
    expect(tried({ state: "acting" }, { active: activePolicy() })).toEqual(NO_BLOCKERS);
    expect(tried({ state: "acting" }, {}, { safety: { canary: false } })).toEqual(NO_BLOCKERS);
    expect(tried({ state: "acting" }, { active: { ...changed, mode: "dry_run" } })).toEqual(NO_BLOCKERS);
  });

  test("can proceed unless a blocker holds it that does not hold every node of its policy", () => {
    const stays = [
      ...["paused", "journal", "credentials", "warming_up", "inventory_incomplete", "inventory_shrunk"],
      ...["inventory_unknown", "last_seen_stale", "service_clock", "sight_cooldown", "window", "blocked_by"],
      ...["approval", "canary", "storm", "storm_cooldown", "breaker", "in_flight", "disrupted", "max_actions"],
    ];
    const proceeds = CAUSED_REASONS.filter((reason) => {
      const { candidate, facts } = guardCase([reason]);
      return canProceed(candidate, facts);
    });
    expect(proceeds.toSorted()).toEqual(stays.toSorted());
    expect(canProceed(buildCandidate({ evaluation: buildEvaluation("false") }), buildFacts())).toBe(false);
  });
});

describe("an episode begins", () => {
  const may = (...held: readonly HoldReason[]) =>
    mayBeginEpisode({ ...decisionOf(NOON), blockers: held.map((reason) => ({ reason, detail: "…" })) });

  test("unless the node had one recently, has another, was given up, or is unhealthy together with many others", () => {
    expect(may()).toBe(true);
    expect(HOLD_REASONS.filter((reason) => !may(reason))).toEqual([
      ...["other_episode", "cooldown", "retry_wait", "retry_limit"],
      ...["storm", "correlated"],
    ]);
    expect(may("paused", "breaker", "window")).toBe(true);
    expect(may("paused", "cooldown")).toBe(false);
  });
});

test("a decision reads the node's own episodes and not those of the whole fleet: many nodes may fire at once", () => {
  const facts = buildFacts({ episodes: [openEpisode(), episodeOf(2, { node: "node_1" })] });
  const refuse = () => {
    throw new Error("all episodes were read");
  };
  const { records } = facts;
  Object.assign(records, { openEpisodes: refuse, closedEpisodes: refuse, actions: refuse, allHolds: refuse });
  const candidate = buildCandidate({ active: activePolicy({}, { proven: false }), episode: openEpisode() });
  expect(decide(candidate, facts).verdict).toBe("act");
  expect(() => records.openEpisodes()).toThrow("all episodes were read");
});
