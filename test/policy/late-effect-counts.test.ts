import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../src/base/duration.ts";
import type { NodeStatus } from "../../src/model/node.ts";
import type { Action, Episode } from "../../src/model/remediation/episode.ts";
import { countFleet } from "../../src/policy/fleet-counts.ts";
import { RemediationRecords } from "../../src/policy/remediation-records.ts";
import { actionOf, closedEpisodeOf } from "../journal/arbitrary-changes.ts";
import { buildFleet } from "../metrics/snapshot-fixtures.ts";
import { activePolicy, NOON } from "./guard-case.ts";

describe("a node with an action whose step is over counts as disrupted", () => {
  const disrupted = (status: NodeStatus, action: Partial<Action>, episode: Partial<Episode> = {}) => {
    const closed = closedEpisodeOf(1, NOON - MINUTE_MS, { node: "late", state: "given_up", ...episode });
    const sent = { node: "late", sentAt: NOON - 50 * MINUTE_MS, statusBefore: "online", ...action } as const;
    const actions = [actionOf(1, closed.id, { ...sent, outcome: "ineffective", dryRun: closed.dryRun })];
    const rows = { timers: [], episodes: [closed], actions, holds: [], facts: new Map(), lastNumber: 0 };
    const fleet = buildFleet([{ id: "late", country: "DE", region: "r", status }]);
    return [...countFleet(fleet, new RemediationRecords(rows), [activePolicy()], false, NOON).disrupted];
  };
  const request = { kind: "quarantine", reason: "r", durationMinutes: 60 } as const;

  test("while it is rebooting within an hour of our reboot, unless it was down before", () => {
    const reboot = { request: { kind: "reboot", force: false } } as const;
    expect(disrupted("rebooting", reboot)).toEqual(["late"]);
    expect(disrupted("rebooting", { ...reboot, sentAt: NOON - 61 * MINUTE_MS })).toEqual([]);
    expect(disrupted("rebooting", { ...reboot, statusBefore: "offline" })).toEqual([]);
    expect(disrupted("quarantined", reboot)).toEqual([]);
  });

  test("while it is quarantined, or shown as in maintenance, until our quarantine should have ended", () => {
    for (const status of ["quarantined", "maintenance"] as const) {
      expect(disrupted(status, { request })).toEqual(["late"]);
      expect(disrupted(status, { request, sentAt: NOON - 61 * MINUTE_MS })).toEqual([]);
    }
    expect(disrupted("rebooting", { request })).toEqual([]);
  });

  test("but not if an operator lifted our quarantine, if another node had the id, or in a dry run", () => {
    expect(disrupted("quarantined", { request }, { state: "freed" })).toEqual([]);
    expect(disrupted("quarantined", { request }, { replaced: true })).toEqual([]);
    expect(disrupted("quarantined", { request }, { dryRun: true })).toEqual([]);
  });
});
