import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import type { Episode } from "../../../src/model/remediation/episode.ts";
import { clearEpisode, observeStatus, refireEpisode, resumeEpisode } from "../../../src/policy/episodes/episode.ts";
import { transition } from "../../../src/policy/episodes/episode-states.ts";
import { rebootOffline, steps } from "../../harness/policies.ts";
import { NOON, openEpisode, quarantineOf } from "../guard-case.ts";

const spec = rebootOffline({ steps: [steps.reboot, steps.force, steps.quarantine] });
const LATER = NOON + 5 * MINUTE_MS;

describe("a suspended episode", () => {
  const back = (overrides: Partial<Episode>, hasActionInFlight = false) =>
    resumeEpisode(openEpisode({ state: "suspended", acted: 1, ...overrides }), hasActionInFlight, LATER).state;

  test("resumes immediately only with an action in flight or our quarantine", () => {
    expect(back({}, true)).toBe("acting");
    expect(back({ quarantine: quarantineOf() })).toBe("quarantined");
    expect(back({ healed: true })).toBe("suspended");
    expect(back({})).toBe("suspended");
  });

  test("resumes its step when its timer fires again, or the next step if a step had healed it", () => {
    const waiting = openEpisode({ state: "suspended", step: 1, acted: 1 });
    expect(refireEpisode(waiting, spec, LATER)).toMatchObject({ state: "firing", step: 1 });
    expect(refireEpisode({ ...waiting, healed: true }, spec, LATER)).toMatchObject({
      state: "firing",
      step: 2,
      healed: false,
    });
    expect(refireEpisode({ ...waiting, step: 2, healed: true }, spec, LATER)).toMatchObject({ state: "given_up" });
  });

  test("is closed after `clear_for`, as healed if a step had healed it", () => {
    const waiting = openEpisode({ state: "suspended", acted: 1 });
    expect(clearEpisode(waiting, LATER).state).toBe("cleared");
    expect(clearEpisode({ ...waiting, healed: true }, LATER).state).toBe("healed");
  });

  test("on probation is not quarantined again", () => {
    const inside = openEpisode({ state: "quarantined", step: 2, acted: 1, quarantine: quarantineOf() });
    const probation = observeStatus(inside, "online", quarantineOf().endsAt);
    const vanished = transition(probation, "unseen", LATER);
    expect(resumeEpisode(vanished, false, LATER)).toMatchObject({ state: "suspended", step: 2 });
    expect(refireEpisode(vanished, spec, LATER).state).toBe("given_up");
  });
});
