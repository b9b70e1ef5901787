import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { NodeStatus } from "../../../src/model/node.ts";
import type { Action, Episode } from "../../../src/model/remediation/episode.ts";
import {
  advanceStep,
  beginEpisode,
  endSteps,
  observeAfterStep,
  observeStatus,
  RATE_LIMITED_ATTEMPTS_MAX,
  recordRateLimited,
  recordSent,
  recordStepResult,
  recordUnsent,
} from "../../../src/policy/episodes/episode.ts";
import { transition } from "../../../src/policy/episodes/episode-states.ts";
import { rebootOffline, steps } from "../../harness/policies.ts";
import { actionOf } from "../../journal/arbitrary-changes.ts";
import { activePolicy, buildObservation, NOON, openEpisode, quarantineOf } from "../guard-case.ts";

const spec = rebootOffline({ steps: [steps.reboot, steps.force, steps.quarantine] });
const LATER = NOON + 5 * MINUTE_MS;

const reboot = actionOf(2, "ep-1", { sentAt: NOON });
const rateLimitedQuarantine = actionOf(3, "ep-1", {
  sentAt: NOON,
  request: { kind: "quarantine", reason: "", durationMinutes: 120 },
});
const actingEpisode = (overrides: Partial<Episode> = {}) => openEpisode({ state: "acting", acted: 1, ...overrides });

test("an episode begins at the first step, without an action, with the policy's fingerprint", () => {
  const active = activePolicy({}, { mode: "dry_run" });
  expect(beginEpisode(active, buildObservation(), "ep-9", NOON)).toMatchObject({
    id: "ep-9",
    policy: "reboot-offline",
    node: "node_0",
    dryRun: true,
    fingerprint: active.policy.fingerprint,
    state: "firing",
    openedAt: NOON,
    closedAt: null,
    step: 0,
    acted: 0,
  });
  expect(beginEpisode(activePolicy({}, { mode: "approve" }), buildObservation(), "ep-9", NOON).dryRun).toBe(false);
});

test("the time of a state is when it was entered", () => {
  const episode = openEpisode({ state: "firing", stateAt: 7 });
  expect(recordUnsent(episode, NOON)).toMatchObject({ state: "firing", stateAt: 7 });
  expect(recordSent(episode, reboot, null, NOON).stateAt).toBe(NOON);
});

describe("a step that ended with `when` false", () => {
  test("makes the episode recover without another step", () => {
    expect(recordStepResult(actingEpisode({ step: 1 }), reboot, "verified", spec, LATER)).toMatchObject({
      state: "recovering",
      stateAt: LATER,
      step: 1,
      healed: true,
    });
  });

  test("leaves the episode quarantined if the quarantine was observed", () => {
    const inside = actingEpisode({ step: 2, quarantine: quarantineOf() });
    expect(recordStepResult(inside, rateLimitedQuarantine, "verified", spec, LATER)).toMatchObject({
      state: "quarantined",
      step: 2,
    });
  });

  test("removes a quarantine that was never observed", () => {
    const unseen = actingEpisode({ step: 2, quarantine: quarantineOf({ seen: false }) });
    expect(recordStepResult(unseen, rateLimitedQuarantine, "verified", spec, LATER)).toMatchObject({
      state: "recovering",
      quarantine: null,
    });
  });
});

describe("a step that ended with `when` true", () => {
  test("leads to the next step", () => {
    const tired = actingEpisode({ step: 0, failures: 3, retryAt: NOON + 1 });
    expect(recordStepResult(tired, reboot, "ineffective", spec, LATER)).toMatchObject({
      state: "firing",
      stateAt: LATER,
      step: 1,
      failures: 0,
      retryAt: null,
      closedAt: null,
    });
  });

  test("gives the episode up if no step is left", () => {
    expect(recordStepResult(actingEpisode({ step: 2 }), reboot, "ineffective", spec, LATER)).toMatchObject({
      state: "given_up",
      closedAt: LATER,
    });
  });

  test("leaves the episode quarantined while our quarantine lasts", () => {
    const inside = actingEpisode({ step: 2, quarantine: quarantineOf() });
    expect(recordStepResult(inside, rateLimitedQuarantine, "ineffective", spec, LATER)).toMatchObject({
      state: "quarantined",
      step: 3,
      closedAt: null,
    });
  });
});

describe("a step with another result", () => {
  test("gives the episode up if the service refused it", () => {
    expect(endSteps(openEpisode({ step: 0 }), spec, LATER)).toMatchObject({ state: "given_up", closedAt: LATER });
    const inside = openEpisode({ step: 2, quarantine: quarantineOf() });
    expect(endSteps(inside, spec, LATER)).toMatchObject({ state: "quarantined", step: 3, closedAt: null });
  });

  test("gives the episode up if the result is unknown", () => {
    expect(recordStepResult(actingEpisode({ step: 0 }), reboot, "in_doubt", spec, LATER)).toMatchObject({
      state: "given_up",
    });
  });

  test("is repeated after Retry-After if the service answered 429", () => {
    expect(recordRateLimited(openEpisode({ step: 1, failures: 2 }), 7_000, spec, NOON)).toMatchObject({
      state: "firing",
      step: 1,
      acted: 0,
      retryAt: NOON + 7_000,
    });
  });

  test("is repeated with a doubled delay after a 429 without Retry-After, at most five times", () => {
    let episode = openEpisode({ step: 1 });
    const waits = Array.from({ length: 4 }, () => {
      episode = recordRateLimited(episode, null, spec, NOON);
      expect(episode).toMatchObject({ state: "firing", step: 1, acted: 0 });
      return episode.retryAt! - NOON;
    });
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000]);
    expect(recordRateLimited(episode, null, spec, NOON)).toMatchObject({ state: "given_up", acted: 0, closedAt: NOON });
  });

  test("is the last one after five 429s, even once our quarantine is over", () => {
    const limited = openEpisode({ step: 1, limited: RATE_LIMITED_ATTEMPTS_MAX - 1, quarantine: quarantineOf() });
    const quarantined = recordRateLimited(limited, null, spec, NOON);
    const probation = observeStatus(quarantined, "online", quarantined.quarantine!.endsAt);
    expect(advanceStep(probation, spec, LATER).state).toBe("given_up");
  });

  test("is not sent again after five 429s while an earlier step has left the node down", () => {
    const limited = openEpisode({ step: 1, acted: 1, limited: RATE_LIMITED_ATTEMPTS_MAX - 1, downSince: NOON });
    expect(recordRateLimited(limited, null, spec, LATER)).toMatchObject({ state: "suspended", step: 3 });
  });

  test("leaves the node down only if it was neither offline nor rebooting before it", () => {
    const sentTo = (statusBefore: NodeStatus) => ({ ...reboot, statusBefore });
    const downSince = (statusBefore: NodeStatus, status: NodeStatus) =>
      observeAfterStep(actingEpisode({ step: 0 }), sentTo(statusBefore), status, LATER).downSince ?? null;
    expect(downSince("online", "offline")).toBe(LATER);
    expect(downSince("online", "online")).toBeNull();
    expect(downSince("offline", "offline")).toBeNull();
    expect(downSince("rebooting", "offline")).toBeNull();
  });

  test("that is a reboot has left the node down if it ends in maintenance, which may hide that it did not come back", () => {
    const sent: Action = { ...reboot, statusBefore: "online" };
    const acting = actingEpisode({ step: 0 });
    expect(observeAfterStep(acting, sent, "maintenance", LATER).downSince).toBe(LATER);
    expect(observeAfterStep({ ...acting, state: "recovering" }, sent, "maintenance", LATER).downSince).toBeUndefined();
    const disconnect: Action = { ...sent, request: { kind: "disconnect" } };
    expect(observeAfterStep(acting, disconnect, "maintenance", LATER).downSince).toBeUndefined();
  });

  test("that left the node down has left it down until the node is online, even if it is in maintenance before", () => {
    const down = openEpisode({ step: 1, acted: 1, state: "suspended", downSince: NOON });
    const downSince = (status: NodeStatus) => observeStatus(down, status, LATER).downSince;
    expect(downSince("maintenance")).toBe(NOON);
    expect(downSince("quarantined")).toBe(NOON);
    expect(downSince("online")).toBeNull();
  });

  test("is repeated with a doubled delay, at most 23 minutes, if it was not sent", () => {
    let episode = openEpisode({ step: 1 });
    const waits: number[] = [];
    for (let failure = 0; failure < 40; failure++) {
      episode = recordUnsent(episode, NOON);
      waits.push((episode.retryAt! - NOON) / MINUTE_MS);
      expect(episode).toMatchObject({ state: "firing", step: 1, acted: 0, failures: failure + 1 });
    }
    expect(waits.slice(0, 7)).toEqual([1, 2, 4, 8, 16, 23, 23]);
    expect(waits.at(-1)).toBe(23);
  });

  test("is verified like any other if it is in doubt", () => {
    const doubtful: Action = { ...reboot, inDoubt: true };
    expect(recordSent(openEpisode({ step: 1, failures: 2, retryAt: 3 }), doubtful, null, LATER)).toMatchObject({
      state: "acting",
      step: 1,
      acted: 1,
      failures: 0,
      retryAt: null,
    });
  });

  test("leads to the next step after a relapse", () => {
    const recovering = actingEpisode({ state: "recovering", step: 0, healed: true });
    expect(advanceStep(recovering, spec, LATER)).toMatchObject({ state: "firing", step: 1, healed: false });
    expect(advanceStep({ ...recovering, step: 2 }, spec, LATER)).toMatchObject({ state: "given_up" });
  });
});

describe("a quarantine of ours", () => {
  test("lasts as long as the service states, or as requested", () => {
    const endsAt = (minutes: number | null, action = rateLimitedQuarantine) =>
      recordSent(openEpisode({ step: 2 }), action, minutes, LATER).quarantine?.endsAt;
    expect(endsAt(null)).toBe(NOON + 2 * HOUR_MS);
    expect(endsAt(60)).toBe(NOON + HOUR_MS);
    expect(endsAt(60, { ...rateLimitedQuarantine, sentAt: null })).toBe(LATER + HOUR_MS);
  });

  test("continues during later steps", () => {
    const existing = quarantineOf();
    expect(recordSent(openEpisode({ quarantine: existing }), reboot, null, LATER).quarantine).toEqual(existing);
  });

  test("is ours once it was observed", () => {
    const asked = actingEpisode({ quarantine: quarantineOf({ seen: false }) });
    expect(observeStatus(asked, "offline", LATER)).toBe(asked);
    expect(observeStatus(asked, "online", LATER)).toBe(asked);
    expect(observeStatus(asked, "quarantined", LATER).quarantine).toMatchObject({ seen: true });
  });

  test("was lifted by an operator if the node is observed online twice", () => {
    const inside = openEpisode({ state: "quarantined", acted: 1, quarantine: quarantineOf() });
    expect(observeStatus(inside, "quarantined", LATER)).toBe(inside);
    const once = observeStatus(inside, "online", LATER);
    expect(once).toMatchObject({ state: "quarantined", quarantine: { seenOnline: 1 } });
    expect(observeStatus(once, "online", LATER)).toMatchObject({ state: "freed", closedAt: LATER, quarantine: null });
    expect(observeStatus(once, "quarantined", LATER)).toMatchObject({ quarantine: { seenOnline: 0 } });
    expect(observeStatus(once, "offline", LATER)).toBe(once);
    // An operator works on it: its recovery proves nothing about the policy.
    expect(observeStatus(once, "maintenance", LATER)).toEqual({ ...once, repaired: true });
  });

  test("of a dry run can't be lifted", () => {
    const madeUp = openEpisode({ state: "quarantined", dryRun: true, acted: 1, quarantine: quarantineOf() });
    expect(observeStatus(observeStatus(madeUp, "online", LATER), "online", LATER)).toBe(madeUp);
  });

  test("ends on the journal's clock and leads to probation; up to a minute early is not an operator's doing", () => {
    const { endsAt } = quarantineOf();
    const inside = openEpisode({ state: "quarantined", acted: 1, quarantine: quarantineOf({ seenOnline: 1 }) });
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

  test("that ends in another state is removed", () => {
    for (const state of ["acting", "firing", "recovering"] as const) {
      const elsewhere = openEpisode({ state, acted: 2, quarantine: quarantineOf() });
      const { endsAt } = quarantineOf();
      expect(observeStatus(elsewhere, "online", endsAt - 1)).toBe(elsewhere);
      expect(observeStatus(elsewhere, "online", endsAt)).toEqual({ ...elsewhere, quarantine: null });
    }
  });

  test("that lasts longer than its duration is overdue", () => {
    const { endsAt } = quarantineOf();
    const inside = openEpisode({ state: "quarantined", acted: 1, quarantine: quarantineOf() });
    expect(observeStatus(inside, "quarantined", endsAt + 5 * MINUTE_MS)).toBe(inside);
    const overdue = observeStatus(inside, "quarantined", endsAt + 5 * MINUTE_MS + 1);
    expect(overdue).toMatchObject({ state: "quarantined", quarantine: { overdue: true } });
    expect(observeStatus(overdue, "quarantined", endsAt + HOUR_MS)).toBe(overdue);
    expect(observeStatus(overdue, "offline", endsAt + HOUR_MS)).toMatchObject({ state: "probation" });
  });

  test("that is not ours does not change an episode", () => {
    const episode = openEpisode();
    expect(observeStatus(episode, "quarantined", LATER)).toBe(episode);
  });
});

test("a closed episode has no quarantine and no retry", () => {
  const inside = openEpisode({ quarantine: quarantineOf(), retryAt: NOON + 1 });
  expect(transition(inside, "withdrawn", LATER)).toMatchObject({
    state: "withdrawn",
    stateAt: LATER,
    closedAt: LATER,
    quarantine: null,
    retryAt: null,
  });
});
