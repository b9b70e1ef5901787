import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Action, Episode, Quarantine } from "../../../src/model/remediation/episode.ts";
import {
  afterClearing,
  afterFailure,
  afterLimit,
  afterLook,
  afterRefusal,
  afterSending,
  afterStep,
  begun,
  nextRung,
  proven,
  resumed,
  suspended,
  withdrawn,
} from "../../../src/policy/episodes/episode.ts";
import { rebootOffline, steps } from "../../harness/policies.ts";
import { actionOf } from "../../journal/arbitrary-changes.ts";
import { activeOf, NOON, openEpisode, sightOf } from "../guard-case.ts";

const rule = rebootOffline({ steps: [steps.reboot, steps.force, steps.quarantine] });
const LATER = NOON + 5 * MINUTE_MS;

const reboot = actionOf(2, "ep-1", { sentAt: NOON });
const cutOff = actionOf(3, "ep-1", {
  sentAt: NOON,
  request: { kind: "quarantine", reason: "", durationMinutes: 120 },
});
const acting = (said: Partial<Episode> = {}) => openEpisode({ state: "acting", acted: 1, ...said });
const quarantine = (said: Partial<Quarantine> = {}): Quarantine => ({
  action: "act-3",
  endsAt: NOON + 2 * HOUR_MS,
  seen: true,
  seenOnline: 0,
  overdue: false,
  ...said,
});

test("an episode begins at the first step, with nothing done, and knows the policy's text", () => {
  const active = activeOf({}, { mode: "dry_run" });
  expect(begun(active, sightOf(), "ep-9", NOON)).toMatchObject({
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
  expect(begun(activeOf({}, { mode: "approve" }), sightOf(), "ep-9", NOON).shadow).toBe(false);
});

test("a state's time begins when it is entered, not with every look", () => {
  const episode = openEpisode({ state: "firing", stateAt: 7 });
  expect(afterFailure(episode, NOON)).toMatchObject({ state: "firing", stateAt: 7 });
  expect(afterSending(episode, reboot, null, NOON).stateAt).toBe(NOON);
});

describe("ended with when false: healed, the ladder is over", () => {
  test("the episode recovers, at the step that healed it", () => {
    expect(afterStep(acting({ step: 1 }), reboot, "verified", rule, LATER)).toMatchObject({
      state: "recovering",
      stateAt: LATER,
      step: 1,
      healed: true,
    });
  });

  test("of a quarantine that was seen, the episode waits in it", () => {
    const inside = acting({ step: 2, quarantine: quarantine() });
    expect(afterStep(inside, cutOff, "verified", rule, LATER)).toMatchObject({ state: "quarantined", step: 2 });
  });

  test("a quarantine that nobody saw did not come about", () => {
    const unseen = acting({ step: 2, quarantine: quarantine({ seen: false }) });
    expect(afterStep(unseen, cutOff, "verified", rule, LATER)).toMatchObject({ state: "recovering", quarantine: null });
  });
});

describe("ended with when true: ineffective, the next step", () => {
  test("waits for leave anew", () => {
    const tired = acting({ step: 0, failures: 3, retryAt: NOON + 1 });
    expect(afterStep(tired, reboot, "ineffective", rule, LATER)).toMatchObject({
      state: "firing",
      stateAt: LATER,
      step: 1,
      failures: 0,
      retryAt: null,
      closedAt: null,
    });
  });

  test("and where none is left the episode is given up", () => {
    expect(afterStep(acting({ step: 2 }), reboot, "ineffective", rule, LATER)).toMatchObject({
      state: "given_up",
      closedAt: LATER,
    });
  });

  test("but not while our quarantine lasts, which is watched to its end", () => {
    const inside = acting({ step: 2, quarantine: quarantine() });
    expect(afterStep(inside, cutOff, "ineffective", rule, LATER)).toMatchObject({
      state: "quarantined",
      step: 3,
      closedAt: null,
    });
  });
});

describe("only ineffective advances the ladder", () => {
  test("refused gives the episode up", () => {
    expect(afterRefusal(openEpisode({ step: 0 }), rule, LATER)).toMatchObject({ state: "given_up", closedAt: LATER });
    const inside = openEpisode({ step: 2, quarantine: quarantine() });
    expect(afterRefusal(inside, rule, LATER)).toMatchObject({ state: "quarantined", step: 3, closedAt: null });
  });

  test("an end that can't be told gives it up as well: nobody knows what a next step would meet", () => {
    expect(afterStep(acting({ step: 0 }), reboot, "in_doubt", rule, LATER)).toMatchObject({ state: "given_up" });
  });

  test("a 429 was not executed: the same step, after Retry-After", () => {
    expect(afterLimit(openEpisode({ step: 1, failures: 2 }), 7_000, NOON)).toMatchObject({
      state: "firing",
      step: 1,
      acted: 0,
      retryAt: NOON + 7_000,
    });
  });

  test("a 429 that names no wait is waited for twice as long each time, from a second, and the fifth is the last", () => {
    let episode = openEpisode({ step: 1 });
    const waits = Array.from({ length: 4 }, () => {
      episode = afterLimit(episode, null, NOON);
      expect(episode).toMatchObject({ state: "firing", step: 1, acted: 0 });
      return episode.retryAt! - NOON;
    });
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000]);
    expect(afterLimit(episode, null, NOON)).toMatchObject({ state: "given_up", acted: 0, closedAt: NOON });
    expect(afterLimit({ ...episode, quarantine: quarantine() }, null, NOON).state).toBe("quarantined");
  });

  test("what never left is tried again: the same step, each time twice as late, half an hour at most", () => {
    let episode = openEpisode({ step: 1 });
    const waits: number[] = [];
    for (let failure = 0; failure < 40; failure++) {
      episode = afterFailure(episode, NOON);
      waits.push((episode.retryAt! - NOON) / MINUTE_MS);
      expect(episode).toMatchObject({ state: "firing", step: 1, acted: 0, failures: failure + 1 });
    }
    expect(waits.slice(0, 7)).toEqual([1, 2, 4, 8, 16, 30, 30]);
    expect(waits.at(-1)).toBe(30);
  });

  test("in_doubt counts as sent: it is verified like any other", () => {
    const doubtful: Action = { ...reboot, inDoubt: true };
    expect(afterSending(openEpisode({ step: 1, failures: 2, retryAt: 3 }), doubtful, null, LATER)).toMatchObject({
      state: "acting",
      step: 1,
      acted: 1,
      failures: 0,
      retryAt: null,
    });
  });

  test("a relapse after a step that healed takes the next one", () => {
    const recovering = acting({ state: "recovering", step: 0, healed: true });
    expect(nextRung(recovering, rule, LATER)).toMatchObject({ state: "firing", step: 1, healed: false });
    expect(nextRung({ ...recovering, step: 2 }, rule, LATER)).toMatchObject({ state: "given_up" });
  });
});

describe("a quarantine of ours", () => {
  test("lasts as long as the service says, or else as long as was asked", () => {
    const endsAt = (minutes: number | null, action = cutOff) =>
      afterSending(openEpisode({ step: 2 }), action, minutes, LATER).quarantine?.endsAt;
    expect(endsAt(null)).toBe(NOON + 2 * HOUR_MS);
    expect(endsAt(60)).toBe(NOON + HOUR_MS);
    expect(endsAt(60, { ...cutOff, sentAt: null })).toBe(LATER + HOUR_MS);
  });

  test("outlives the steps that follow it", () => {
    const kept = quarantine();
    expect(afterSending(openEpisode({ quarantine: kept }), reboot, null, LATER).quarantine).toEqual(kept);
  });

  test("is owned once it was seen", () => {
    const asked = acting({ quarantine: quarantine({ seen: false }) });
    expect(afterLook(asked, "offline", LATER)).toBe(asked);
    expect(afterLook(asked, "online", LATER)).toBe(asked);
    expect(afterLook(asked, "quarantined", LATER).quarantine).toMatchObject({ seen: true });
  });

  test("in which the node is seen online twice was lifted by a person", () => {
    const inside = openEpisode({ state: "quarantined", acted: 1, quarantine: quarantine() });
    expect(afterLook(inside, "quarantined", LATER)).toBe(inside);
    const once = afterLook(inside, "online", LATER);
    expect(once).toMatchObject({ state: "quarantined", quarantine: { seenOnline: 1 } });
    expect(afterLook(once, "online", LATER)).toMatchObject({ state: "freed", closedAt: LATER, quarantine: null });
    expect(afterLook(once, "quarantined", LATER)).toMatchObject({ quarantine: { seenOnline: 0 } });
    expect(afterLook(once, "offline", LATER)).toBe(once);
    // An operator works on it: its recovery proves nothing about the policy.
    expect(afterLook(once, "maintenance", LATER)).toEqual({ ...once, repaired: true });
  });

  test("of a dry run is lifted by nobody", () => {
    const madeUp = openEpisode({ state: "quarantined", shadow: true, acted: 1, quarantine: quarantine() });
    expect(afterLook(afterLook(madeUp, "online", LATER), "online", LATER)).toBe(madeUp);
  });

  test("ends on the journal's clock, then probation: a minute early is its end, not a person", () => {
    const { endsAt } = quarantine();
    const inside = openEpisode({ state: "quarantined", acted: 1, quarantine: quarantine({ seenOnline: 1 }) });
    expect(afterLook(inside, "online", endsAt - MINUTE_MS - 1)).toMatchObject({ state: "freed" });
    expect(afterLook(inside, "online", endsAt - MINUTE_MS)).toBe(inside);
    expect(afterLook(inside, "online", endsAt - 1)).toBe(inside);
    expect(afterLook(inside, "online", endsAt)).toMatchObject({
      state: "probation",
      stateAt: endsAt,
      quarantine: null,
    });
    expect(afterLook(inside, "offline", endsAt)).toMatchObject({ state: "probation" });
  });

  test("that ends while its episode is elsewhere ends there", () => {
    for (const state of ["acting", "firing", "recovering"] as const) {
      const elsewhere = openEpisode({ state, acted: 2, quarantine: quarantine() });
      const { endsAt } = quarantine();
      expect(afterLook(elsewhere, "online", endsAt - 1)).toBe(elsewhere);
      expect(afterLook(elsewhere, "online", endsAt)).toEqual({ ...elsewhere, quarantine: null });
    }
  });

  test("that outlasts its duration is overdue: told, and not touched", () => {
    const { endsAt } = quarantine();
    const inside = openEpisode({ state: "quarantined", acted: 1, quarantine: quarantine() });
    expect(afterLook(inside, "quarantined", endsAt + 5 * MINUTE_MS)).toBe(inside);
    const overdue = afterLook(inside, "quarantined", endsAt + 5 * MINUTE_MS + 1);
    expect(overdue).toMatchObject({ state: "quarantined", quarantine: { overdue: true } });
    expect(afterLook(overdue, "quarantined", endsAt + HOUR_MS)).toBe(overdue);
    expect(afterLook(overdue, "offline", endsAt + HOUR_MS)).toMatchObject({ state: "probation" });
  });

  test("that is none of ours is nothing to an episode", () => {
    const episode = openEpisode();
    expect(afterLook(episode, "quarantined", LATER)).toBe(episode);
  });
});

describe("a suspended episode", () => {
  const back = (said: Partial<Episode>, hasActionUnderWay = false) =>
    resumed(openEpisode({ state: "suspended", acted: 1, ...said }), hasActionUnderWay, LATER).state;

  test("goes on at once only where an action of ours or our quarantine is under way", () => {
    expect(back({}, true)).toBe("acting");
    expect(back({ quarantine: quarantine() })).toBe("quarantined");
    expect(back({ healed: true })).toBe("suspended");
    expect(back({})).toBe("suspended");
  });

  test("goes on with its step once `for` is proven again, and with the next one if a step had healed it", () => {
    const waiting = openEpisode({ state: "suspended", step: 1, acted: 1 });
    expect(proven(waiting, rule, LATER)).toMatchObject({ state: "firing", step: 1 });
    expect(proven({ ...waiting, healed: true }, rule, LATER)).toMatchObject({
      state: "firing",
      step: 2,
      healed: false,
    });
    expect(proven({ ...waiting, step: 2, healed: true }, rule, LATER)).toMatchObject({ state: "given_up" });
  });

  test("is closed by `clear_for`: healed if a step had healed it", () => {
    const waiting = openEpisode({ state: "suspended", acted: 1 });
    expect(afterClearing(waiting, LATER).state).toBe("cleared");
    expect(afterClearing({ ...waiting, healed: true }, LATER).state).toBe("healed");
  });

  test("on probation, is not put into quarantine once more", () => {
    const inside = openEpisode({ state: "quarantined", step: 2, acted: 1, quarantine: quarantine() });
    const probation = afterLook(inside, "online", quarantine().endsAt);
    const vanished = suspended(probation, LATER);
    expect(resumed(vanished, false, LATER)).toMatchObject({ state: "suspended", step: 2 });
    expect(proven(vanished, rule, LATER).state).toBe("given_up");
  });
});

test("a closed episode has no quarantine, and nothing that it waits for", () => {
  const inside = openEpisode({ quarantine: quarantine(), retryAt: NOON + 1 });
  expect(withdrawn(inside, LATER)).toMatchObject({
    state: "withdrawn",
    stateAt: LATER,
    closedAt: LATER,
    quarantine: null,
    retryAt: null,
  });
});
