import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { NodeStatus } from "../../../src/model/node.ts";
import type { Episode } from "../../../src/model/remediation/episode.ts";
import { clearEpisode, observeStatus, recordSent } from "../../../src/policy/episodes/episode.ts";
import { actionOf } from "../../journal/arbitrary-changes.ts";
import { NOON, openEpisode } from "../guard-case.ts";

const LATER = NOON + 5 * MINUTE_MS;
const reboot = actionOf(2, "ep-1", { sentAt: NOON });
const acting = (overrides: Partial<Episode> = {}) => openEpisode({ state: "acting", acted: 1, ...overrides });
const quarantine = { action: "act-3", endsAt: NOON + 2 * HOUR_MS, seen: true, seenOnline: 0, overdue: false };

describe("a node on which an operator acts during our step", () => {
  const seen = (status: NodeStatus, overrides: Partial<Episode> = {}) =>
    observeStatus(acting(overrides), status, LATER).repaired;

  test("is repaired by the operator if it is in maintenance or in a quarantine that is not ours", () => {
    expect([seen("maintenance"), seen("quarantined")]).toEqual([true, true]);
    expect(seen("maintenance", { state: "quarantined", quarantine })).toBe(true);
  });

  test("is not repaired in our own quarantine, in another state, in a dry run, or without a step in progress", () => {
    expect(seen("quarantined", { quarantine })).toBe(undefined);
    for (const status of ["online", "offline", "rebooting", "unknown"] as const) expect(seen(status)).toBe(undefined);
    expect(seen("maintenance", { dryRun: true })).toBe(undefined);
    expect(seen("maintenance", { state: "firing" })).toBe(undefined);
  });

  test("does not count as healed by the policy until the policy acts again", () => {
    const repaired = acting({ state: "recovering", repaired: true });
    expect(clearEpisode(repaired, LATER).state).toBe("cleared");
    expect(clearEpisode({ ...repaired, repaired: false }, LATER).state).toBe("healed");
    const sent = recordSent(openEpisode({ repaired: true, healed: true }), reboot, null, LATER);
    expect(sent).toMatchObject({ repaired: false, healed: false });
  });
});
