import { describe, expect, test } from "vitest";
import { actionName } from "../../src/model/remediation/episode.ts";
import { findMismatches, type ObservedOutcome } from "../../src/policy/policy-test-expectation.ts";

const seen: ObservedOutcome = {
  verdict: "unknown",
  unknowns: ["node.cpu_usage: stale"],
  timer: "firing",
  blockers: [
    { reason: "window", detail: "outside nights" },
    { reason: "storm", detail: "3 of 11 nodes are unhealthy" },
  ],
  actions: [
    { request: { kind: "reboot", force: false }, outcome: "ineffective" },
    { request: { kind: "reboot", force: true }, outcome: null },
  ],
};

const about = { atMs: 0, node: "node_1", policy: "p" };

test("a met expectation has no mismatch: reasons in any order, outcomes only if named", () => {
  const expected = { ...about, verdict: "unknown", timer: "firing", held: ["window", "storm"] } as const;
  expect(findMismatches({ ...expected, actions: ["reboot", "forced reboot"] }, seen)).toEqual([]);
  expect(findMismatches({ ...expected, actions: ["reboot: ineffective", "forced reboot"] }, seen)).toEqual([]);
  expect(findMismatches(about, seen)).toEqual([]);
});

describe("a failed expectation names the actual outcome and its cause:", () => {
  test.each<readonly [expected: object, lines: readonly string[]]>([
    [{ verdict: "true" }, ["verdict: expected true, got unknown (node.cpu_usage: stale)"]],
    [{ timer: "pending" }, ["timer: expected pending, got firing"]],
    [
      { held: ["storm"] },
      ["held: expected storm, got storm, window\n    window: outside nights\n    storm: 3 of 11 nodes are unhealthy"],
    ],
    [
      { held: [] },
      ["held: expected none, got storm, window\n    window: outside nights\n    storm: 3 of 11 nodes are unhealthy"],
    ],
    [
      { actions: ["reboot", "forced reboot", "quarantine"] },
      [
        "actions: expected reboot, forced reboot, quarantine, got reboot: ineffective, forced reboot\n    window: outside nights\n    storm: 3 of 11 nodes are unhealthy",
      ],
    ],
    [{ actions: [] }, ["actions: expected none, got reboot: ineffective, forced reboot"]],
    [{ actions: ["reboot"] }, ["actions: expected reboot, got reboot: ineffective, forced reboot"]],
    [
      { actions: ["reboot: verified", "forced reboot"] },
      ["actions: expected reboot: verified, forced reboot, got reboot: ineffective, forced reboot"],
    ],
    [
      { actions: ["reboot", "forced reboot: verified"] },
      ["actions: expected reboot, forced reboot: verified, got reboot: ineffective, forced reboot"],
    ],
    [
      { verdict: "false", timer: "inactive" },
      ["verdict: expected false, got unknown (node.cpu_usage: stale)", "timer: expected inactive, got firing"],
    ],
  ])("%j", (expected, lines) => {
    expect(findMismatches({ ...about, ...expected }, seen)).toEqual(lines);
  });
});

test("actionName distinguishes forced reboots", () => {
  expect(actionName({ kind: "disconnect" })).toBe("disconnect");
  expect(actionName({ kind: "quarantine", reason: "r", durationMinutes: 5 })).toBe("quarantine");
});
