import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Action, Episode, Quarantine } from "../../../src/model/remediation/episode.ts";
import {
  advanceStep,
  beginEpisode,
  observeStatus,
  recordRateLimited,
  recordRefused,
  recordSent,
  recordStepResult,
  recordUnsent,
  withdrawEpisode,
} from "../../../src/policy/episodes/episode.ts";
import { rebootOffline, steps } from "../../harness/policies.ts";
import { actionOf } from "../../journal/arbitrary-changes.ts";
import { activePolicy, buildObservation, NOON, openEpisode } from "../guard-case.ts";

const rule = rebootOffline({ steps: [steps.reboot, steps.force, steps.quarantine] });
const LATER = NOON + 5 * MINUTE_MS;

const reboot = actionOf(2, "ep-1", { sentAt: NOON });
const rateLimitedQuarantine = actionOf(3, "ep-1", {
  sentAt: NOON,
  request: { kind: "quarantine", reason: "", durationMinutes: 120 },
});
const actingEpisode = (overrides: Partial<Episode> = {}) => openEpisode({ state: "acting", acted: 1, ...overrides });
const quarantine = (overrides: Partial<Quarantine> = {}): Quarantine => ({
  action: "act-3",
  endsAt: NOON + 2 * HOUR_MS,
  seen: true,
  seenOnline: 0,
  overdue: false,
  ...overrides,
});

test("an episode begins at the first step, with nothing done, and knows the policy's text", () => {
  const active = activePolicy({}, { mode: "dry_run" });
  expect(beginEpisode(active, buildObservation(), "ep-9", NOON)).toMatchObject({
    id: "ep-9",
    policy: "reboot-offline",
    node: "node_0",
    shadow: true,
    fingerprint: active.policy.fingerprint,
    state: "firing",
    openedAt: NOON,
    closedAt: null,
    step: 0,
    acted: 0,
  });
  expect(beginEpisode(activePolicy({}, { mode: "approve" }), buildObservation(), "ep-9", NOON).shadow).toBe(false);
});

test("a state's time begins when it is entered, not with every look", () => {
  const episode = openEpisode({ state: "firing", stateAt: 7 });
  expect(recordUnsent(episode, NOON)).toMatchObject({ state: "firing", stateAt: 7 });
  expect(recordSent(episode, reboot, null, NOON).stateAt).toBe(NOON);
});

describe("ended with when false: healed, no further step follows", () => {
  test("the episode recovers, at the step that healed it", () => {
    expect(recordStepResult(actingEpisode({ step: 1 }), reboot, "verified", rule, LATER)).toMatchObject({
      state: "recovering",
      stateAt: LATER,
      step: 1,
      healed: true,
    });
  });

  test("of a quarantine that was seen, the episode waits in it", () => {
    const inside = actingEpisode({ step: 2, quarantine: quarantine() });
    expect(recordStepResult(inside, rateLimitedQuarantine, "verified", rule, LATER)).toMatchObject({
      state: "quarantined",
      step: 2,
    });
  });

  test("a quarantine that was not observed did not come about", () => {
    const unseen = actingEpisode({ step: 2, quarantine: quarantine({ seen: false }) });
    expect(recordStepResult(unseen, rateLimitedQuarantine, "verified", rule, LATER)).toMatchObject({
      state: "recovering",
      quarantine: null,
    });
  });
});

describe("ended with when true: ineffective, the next step", () => {
  test("waits for leave anew", () => {
    const tired = actingEpisode({ step: 0, failures: 3, retryAt: NOON + 1 });
    expect(recordStepResult(tired, reboot, "ineffective", rule, LATER)).toMatchObject({
      state: "firing",
      stateAt: LATER,
      step: 1,
      failures: 0,
      retryAt: null,
      closedAt: null,
    });
  });

  test("and where none is left the episode is given up", () => {
    expect(recordStepResult(actingEpisode({ step: 2 }), reboot, "ineffective", rule, LATER)).toMatchObject({
      state: "given_up",
      closedAt: LATER,
    });
  });

  test("but not while our quarantine lasts, which is watched to its end", () => {
    const inside = actingEpisode({ step: 2, quarantine: quarantine() });
    expect(recordStepResult(inside, rateLimitedQuarantine, "ineffective", rule, LATER)).toMatchObject({
      state: "quarantined",
      step: 3,
      closedAt: null,
    });
  });
});

describe("only ineffective advances to the next step", () => {
  test("refused gives the episode up", () => {
    expect(recordRefused(openEpisode({ step: 0 }), rule, LATER)).toMatchObject({ state: "given_up", closedAt: LATER });
    const inside = openEpisode({ step: 2, quarantine: quarantine() });
    expect(recordRefused(inside, rule, LATER)).toMatchObject({ state: "quarantined", step: 3, closedAt: null });
  });

  test("an unknown result gives it up as well: the effect of a next step is unknown", () => {
    expect(recordStepResult(actingEpisode({ step: 0 }), reboot, "in_doubt", rule, LATER)).toMatchObject({
      state: "given_up",
    });
  });

  test("a 429 was not executed: the same step, after Retry-After", () => {
    expect(recordRateLimited(openEpisode({ step: 1, failures: 2 }), 7_000, NOON)).toMatchObject({
      state: "firing",
      step: 1,
      acted: 0,
      retryAt: NOON + 7_000,
    });
  });

  test("a 429 that names no wait is waited for twice as long each time, from a second, and the fifth is the last", () => {
    let episode = openEpisode({ step: 1 });
    const waits = Array.from({ length: 4 }, () => {
      episode = recordRateLimited(episode, null, NOON);
      expect(episode).toMatchObject({ state: "firing", step: 1, acted: 0 });
      return episode.retryAt! - NOON;
    });
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000]);
    expect(recordRateLimited(episode, null, NOON)).toMatchObject({ state: "given_up", acted: 0, closedAt: NOON });
    expect(recordRateLimited({ ...episode, quarantine: quarantine() }, null, NOON).state).toBe("quarantined");
  });

  test("what never left is tried again: the same step, each time twice as late, half an hour at most", () => {
    let episode = openEpisode({ step: 1 });
    const waits: number[] = [];
    for (let failure = 0; failure < 40; failure++) {
      episode = recordUnsent(episode, NOON);
      waits.push((episode.retryAt! - NOON) / MINUTE_MS);
      expect(episode).toMatchObject({ state: "firing", step: 1, acted: 0, failures: failure + 1 });
    }
    expect(waits.slice(0, 7)).toEqual([1, 2, 4, 8, 16, 30, 30]);
    expect(waits.at(-1)).toBe(30);
  });

  test("in_doubt counts as sent: it is verified like any other", () => {
    const doubtful: Action = { ...reboot, inDoubt: true };
    expect(recordSent(openEpisode({ step: 1, failures: 2, retryAt: 3 }), doubtful, null, LATER)).toMatchObject({
      state: "acting",
      step: 1,
      acted: 1,
      failures: 0,
      retryAt: null,
    });
  });

  test("a relapse after a step that healed takes the next one", () => {
    const recovering = actingEpisode({ state: "recovering", step: 0, healed: true });
    expect(advanceStep(recovering, rule, LATER)).toMatchObject({ state: "firing", step: 1, healed: false });
    expect(advanceStep({ ...recovering, step: 2 }, rule, LATER)).toMatchObject({ state: "given_up" });
  });
});

describe("a quarantine of ours", () => {
  test("lasts as long as the service says, or else as long as was asked", () => {
    const endsAt = (minutes: number | null, action = rateLimitedQuarantine) =>
      recordSent(openEpisode({ step: 2 }), action, minutes, LATER).quarantine?.endsAt;
    expect(endsAt(null)).toBe(NOON + 2 * HOUR_MS);
    expect(endsAt(60)).toBe(NOON + HOUR_MS);
    expect(endsAt(60, { ...rateLimitedQuarantine, sentAt: null })).toBe(LATER + HOUR_MS);
  });

  test("outlives the steps that follow it", () => {
    const kept = quarantine();
    expect(recordSent(openEpisode({ quarantine: kept }), reboot, null, LATER).quarantine).toEqual(kept);
  });

  test("is owned once it was seen", () => {
    const asked = actingEpisode({ quarantine: quarantine({ seen: false }) });
    expect(observeStatus(asked, "offline", LATER)).toBe(asked);
    expect(observeStatus(asked, "online", LATER)).toBe(asked);
    expect(observeStatus(asked, "quarantined", LATER).quarantine).toMatchObject({ seen: true });
  });

  test("in which the node is seen online twice was lifted by an operator", () => {
    const inside = openEpisode({ state: "quarantined", acted: 1, quarantine: quarantine() });
    expect(observeStatus(inside, "quarantined", LATER)).toBe(inside);
    const once = observeStatus(inside, "online", LATER);
    expect(once).toMatchObject({ state: "quarantined", quarantine: { seenOnline: 1 } });
    expect(observeStatus(once, "online", LATER)).toMatchObject({ state: "freed", closedAt: LATER, quarantine: null });
    expect(observeStatus(once, "quarantined", LATER)).toMatchObject({ quarantine: { seenOnline: 0 } });
    expect(observeStatus(once, "offline", LATER)).toBe(once);
    // An operator works on it: its recovery proves nothing about the policy.
    expect(observeStatus(once, "maintenance", LATER)).toEqual({ ...once, repaired: true });
  });

  test("of a dry run is not lifted", () => {
    const madeUp = openEpisode({ state: "quarantined", shadow: true, acted: 1, quarantine: quarantine() });
    expect(observeStatus(observeStatus(madeUp, "online", LATER), "online", LATER)).toBe(madeUp);
  });

  test("ends on the journal's clock, then probation: a minute early is its end, not an operator", () => {
    const { endsAt } = quarantine();
    const inside = openEpisode({ state: "quarantined", acted: 1, quarantine: quarantine({ seenOnline: 1 }) });
    expect(observeStatus(inside, "online", endsAt - MINUTE_MS - 1)).toMatchObject({ state: "freed" });
    expect(observeStatus(inside, "online", endsAt - MINUTE_MS)).toBe(inside);
    expect(observeStatus(inside, "online", endsAt - 1)).toBe(inside);
    expect(observeStatus(inside, "online", endsAt)).toMatchObject({
      state: "probation",
      stateAt: endsAt,
      quarantine: null,
    });
    expect(observeStatus(inside, "offline", endsAt)).toMatchObject({ state: "probation" });
  });

  test("that ends while its episode is elsewhere ends there", () => {
    for (const state of ["acting", "firing", "recovering"] as const) {
      const elsewhere = openEpisode({ state, acted: 2, quarantine: quarantine() });
      const { endsAt } = quarantine();
      expect(observeStatus(elsewhere, "online", endsAt - 1)).toBe(elsewhere);
      expect(observeStatus(elsewhere, "online", endsAt)).toEqual({ ...elsewhere, quarantine: null });
    }
  });

  test("that outlasts its duration is overdue: it is reported, and the node is not acted on", () => {
    const { endsAt } = quarantine();
    const inside = openEpisode({ state: "quarantined", acted: 1, quarantine: quarantine() });
    expect(observeStatus(inside, "quarantined", endsAt + 5 * MINUTE_MS)).toBe(inside);
    const overdue = observeStatus(inside, "quarantined", endsAt + 5 * MINUTE_MS + 1);
    expect(overdue).toMatchObject({ state: "quarantined", quarantine: { overdue: true } });
    expect(observeStatus(overdue, "quarantined", endsAt + HOUR_MS)).toBe(overdue);
    expect(observeStatus(overdue, "offline", endsAt + HOUR_MS)).toMatchObject({ state: "probation" });
  });

  test("that is none of ours is nothing to an episode", () => {
    const episode = openEpisode();
    expect(observeStatus(episode, "quarantined", LATER)).toBe(episode);
  });
});

test("a closed episode has no quarantine, and nothing that it waits for", () => {
  const inside = openEpisode({ quarantine: quarantine(), retryAt: NOON + 1 });
  expect(withdrawEpisode(inside, LATER)).toMatchObject({
    state: "withdrawn",
    stateAt: LATER,
    closedAt: LATER,
    quarantine: null,
    retryAt: null,
  });
});
