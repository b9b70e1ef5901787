import { expect, test } from "vitest";
import type { Action, Episode } from "../../src/model/remediation/episode.ts";
import { findCanary } from "../../src/policy/decision.ts";
import { RemediationRecords } from "../../src/policy/remediation-records.ts";
import { actionOf, episodeOf } from "../journal/arbitrary-changes.ts";
import { activePolicy, NOON } from "./guard-case.ts";

const { policy } = activePolicy();
const { fingerprint } = policy;

/** An open episode with one ineffective action. */
function attemptedEpisode(
  number: number,
  overrides: Partial<Episode> = {},
  sent: Partial<Action> = {},
): [Episode, Action] {
  const episode = episodeOf(number, {
    node: `node_${number}`,
    state: "firing",
    acted: 1,
    openedAt: NOON + number,
    ...overrides,
  });
  const action = actionOf(number + 100, episode.id, { state: "ended", sentAt: NOON, fingerprint, ...sent });
  return [episode, action];
}

function canaryAmong(all: readonly [Episode, Action][], stuck: readonly string[] = []): string | null {
  const rows = { episodes: all.map(([episode]) => episode), actions: all.map(([, action]) => action) };
  const records = new RemediationRecords({ ...rows, timers: [], holds: [], facts: new Map(), lastNumber: 0 });
  return findCanary(policy, records, ({ id }) => !stuck.includes(id))?.id ?? null;
}

test("the canary is the oldest episode that can proceed", () => {
  expect(canaryAmong([attemptedEpisode(2), attemptedEpisode(1), attemptedEpisode(3)])).toBe("ep-1");
  expect(canaryAmong([attemptedEpisode(2), attemptedEpisode(1), attemptedEpisode(3)], ["ep-1"])).toBe("ep-2");
  expect(canaryAmong([attemptedEpisode(1)], ["ep-1"])).toBeNull();
  expect(canaryAmong([])).toBeNull();
});

test("the canary is the episode with an action in flight, even if others can proceed or its node is gone", () => {
  for (const state of ["posting", "sent"] as const) {
    expect(canaryAmong([attemptedEpisode(1), attemptedEpisode(2, { state: "acting" }, { state })], ["ep-2"])).toBe(
      "ep-2",
    );
    expect(canaryAmong([attemptedEpisode(1), attemptedEpisode(2, { state: "suspended" }, { state })], ["ep-2"])).toBe(
      "ep-2",
    );
  }
});

test("an episode is not the canary before it has sent an action under the current version", () => {
  expect(canaryAmong([attemptedEpisode(1, {}, { sentAt: null })])).toBeNull();
  expect(canaryAmong([attemptedEpisode(1, {}, { fingerprint: "as it was" })])).toBeNull();
  expect(canaryAmong([attemptedEpisode(1, { fingerprint: "as it was" })])).toBe("ep-1");
});

test("an episode of another policy, of a dry run or a closed one is not the canary", () => {
  expect(canaryAmong([attemptedEpisode(1, { policy: "another" })])).toBeNull();
  expect(canaryAmong([attemptedEpisode(1, { dryRun: true })])).toBeNull();
  expect(canaryAmong([attemptedEpisode(1, { state: "given_up", closedAt: NOON })])).toBeNull();
});
