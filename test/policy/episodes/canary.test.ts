import { expect, test } from "vitest";
import type { Action, Episode } from "../../../src/model/remediation/episode.ts";
import { canaryOf } from "../../../src/policy/episodes/canary.ts";
import { createCasebook } from "../../../src/policy/remediation-state.ts";
import { actionOf, episodeOf } from "../../journal/arbitrary-changes.ts";
import { activeOf, NOON } from "../guard-case.ts";

const { policy } = activeOf();
const { fingerprint } = policy;

/** An open episode with one action that was ineffective, but for what is said of both. */
function tried(number: number, said: Partial<Episode> = {}, sent: Partial<Action> = {}): [Episode, Action] {
  const episode = episodeOf(number, {
    node: `node_${number}`,
    state: "firing",
    acted: 1,
    openedAt: NOON + number,
    ...said,
  });
  const action = actionOf(number + 100, episode.id, { state: "ended", sentAt: NOON, fingerprint, ...sent });
  return [episode, action];
}

function canary(all: readonly [Episode, Action][], stuck: readonly string[] = []): string | null {
  const rows = { episodes: all.map(([episode]) => episode), actions: all.map(([, action]) => action) };
  const casebook = createCasebook({ ...rows, timers: [], holds: [], facts: new Map(), lastNumber: 0 });
  return canaryOf(policy, casebook, ({ id }) => !stuck.includes(id))?.id ?? null;
}

test("the canary is the oldest episode that can proceed", () => {
  expect(canary([tried(2), tried(1), tried(3)])).toBe("ep-1");
  expect(canary([tried(2), tried(1), tried(3)], ["ep-1"])).toBe("ep-2");
  expect(canary([tried(1)], ["ep-1"])).toBeNull();
  expect(canary([])).toBeNull();
});

test("the canary is the episode with an action under way, whatever else can proceed, also if its node is gone", () => {
  for (const state of ["posting", "sent"] as const) {
    expect(canary([tried(1), tried(2, { state: "acting" }, { state })], ["ep-2"])).toBe("ep-2");
    expect(canary([tried(1), tried(2, { state: "suspended" }, { state })], ["ep-2"])).toBe("ep-2");
  }
});

test("an episode is no canary before it has sent an action under the current text", () => {
  expect(canary([tried(1, {}, { sentAt: null })])).toBeNull();
  expect(canary([tried(1, {}, { fingerprint: "as it was" })])).toBeNull();
  expect(canary([tried(1, { fingerprint: "as it was" })])).toBe("ep-1");
});

test("an episode of another policy, of a dry run, or that is closed is no canary", () => {
  expect(canary([tried(1, { policy: "another" })])).toBeNull();
  expect(canary([tried(1, { shadow: true })])).toBeNull();
  expect(canary([tried(1, { state: "given_up", closedAt: NOON })])).toBeNull();
});
