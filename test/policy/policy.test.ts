import { describe, expect, test } from "vitest";
import { MODES } from "../../src/model/policy/policy.ts";
import { compilePolicy, conditionKeyOf, lowerMode, mustCompile, policySources } from "../../src/policy/policy.ts";
import { rebootOffline, steps } from "../harness/policies.ts";

describe("a policy's text", () => {
  const print = (changed: Parameters<typeof rebootOffline>[0]) => compilePolicy(rebootOffline(changed)).fingerprint;

  test("changes with every key except the mode", () => {
    const changes = [
      { when: 'node.status != "online"' },
      { match: 'node.country == "DE"' },
      { forMs: 1 },
      { clearForMs: 1 },
      { maxAgeMs: 1 },
      { steps: [steps.reboot] },
      { retry: { episodes: 1, everyMs: 1, forgetAfterMs: 1 } },
      { windows: ["nights"] },
      { blockedBy: [{ kind: "query" as const, query: "up" }] },
      { name: "another" },
    ];
    const all = [print({}), ...changes.map(print)];
    expect(new Set(all).size).toBe(all.length);
    for (const mode of MODES) expect(print({ mode })).toBe(print({}));
  });

  test("has the same condition key while match and when are the same", () => {
    const about = (changed: Parameters<typeof rebootOffline>[0]) => compilePolicy(rebootOffline(changed)).conditionKey;
    expect(about({ forMs: 1, steps: [steps.notify], windows: ["nights"], mode: "dry_run" })).toBe(about({}));
    expect(about({ when: "node.uptime_hours < 1" })).not.toBe(about({}));
    expect(about({ match: 'node.country == "DE"' })).not.toBe(about({}));
  });
});

test("the expectations of steps are compiled", () => {
  const expecting = { ...steps.reboot, verify: { withinMs: 1, expect: "node.uptime_hours < 1" } };
  const { expects, match } = compilePolicy(rebootOffline({ steps: [steps.notify, expecting, steps.force] }));
  expect(expects.map((each) => each?.fields.map(({ name }) => name) ?? null)).toEqual([
    null,
    ["node.uptime_hours"],
    null,
  ]);
  expect(match).toBeNull();
});

test("an invalid expression throws, because the loader should have rejected it", () => {
  expect(() => mustCompile("node.state == 1")).toThrow('"node.state == 1": ');
});

test("lowerMode returns the lower of two modes", () => {
  const table = MODES.map((one) => MODES.map((other) => lowerMode(one, other)));
  expect(table).toEqual([
    ["dry_run", "dry_run", "dry_run"],
    ["dry_run", "approve", "approve"],
    ["dry_run", "approve", "enforce"],
  ]);
});

test("the condition key can be computed from the fingerprint", () => {
  const policy = compilePolicy(rebootOffline({ match: 'node.country == "DE"' }));
  expect(conditionKeyOf(policy.fingerprint)).toBe(policy.conditionKey);
  expect(conditionKeyOf(compilePolicy(rebootOffline({})).fingerprint)).not.toBe(policy.conditionKey);
});

test("policySources returns each collector of match and when once", () => {
  const of = (match: string | null, when: string) => policySources(compilePolicy(rebootOffline({ match, when })));
  expect(of(null, 'node.status == "offline"')).toEqual(["nodes"]);
  expect(of("node.cpu_usage > 0.9", "sessions.total == 0 && node.uptime_hours > 1 && node.disk_usage > 0.5")).toEqual([
    ...["details", "sessions", "nodes"],
  ]);
});
