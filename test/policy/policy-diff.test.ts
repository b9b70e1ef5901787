import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { PolicySpec } from "../../src/config/schema/policy.ts";
import { comparePolicies } from "../../src/policy/policy-diff.ts";
import { rebootOffline, steps } from "../harness/policies.ts";

/** Differences as text: `effect key: text`. */
const differenceTexts = (before: readonly PolicySpec[], after: readonly PolicySpec[]) =>
  comparePolicies(before, after).map(({ effect, key, text }) => `${effect} ${key}: ${text}`);
const differencesAfterChange = (before: Partial<PolicySpec>, after: Partial<PolicySpec>) =>
  differenceTexts([rebootOffline(before)], [rebootOffline(after)]);

test("equal policies have no differences", () => {
  expect(differencesAfterChange({}, {})).toEqual([]);
});

describe("a change that makes a policy act more or sooner has the opposite effect in reverse:", () => {
  test.each<readonly [less: Partial<PolicySpec>, more: Partial<PolicySpec>, more: string, less: string]>([
    [{ mode: "dry_run" }, { mode: "enforce" }, "mode: enforce, was dry_run", "mode: dry_run, was enforce"],
    [{ forMs: HOUR_MS }, { forMs: MINUTE_MS }, "for: 1m, was 1h", "for: 1h, was 1m"],
    [
      { retry: { episodes: 1, everyMs: HOUR_MS, forgetAfterMs: HOUR_MS } },
      { retry: { episodes: 1, everyMs: MINUTE_MS, forgetAfterMs: HOUR_MS } },
      "retry.every: 1m, was 1h",
      "retry.every: 1h, was 1m",
    ],
    [
      { retry: { episodes: 1, everyMs: HOUR_MS, forgetAfterMs: HOUR_MS } },
      { retry: { episodes: 1, everyMs: HOUR_MS, forgetAfterMs: MINUTE_MS } },
      "retry.forget_after: 1m, was 1h",
      "retry.forget_after: 1h, was 1m",
    ],
    [
      { retry: { episodes: 1, everyMs: HOUR_MS, forgetAfterMs: HOUR_MS } },
      { retry: { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: HOUR_MS } },
      "retry.episodes: 2, was 1",
      "retry.episodes: 1, was 2",
    ],
    [{ windows: ["nights"] }, { windows: [] }, "windows: always, was nights", "windows: nights, was always"],
    [{ windows: ["nights"] }, { windows: ["nights", "noon"] }, "windows: newly noon", "windows: no longer noon"],
    [
      { blockedBy: [{ kind: "query", query: "up" }] },
      { blockedBy: [] },
      "blocked_by: no longer query up",
      "blocked_by: newly query up",
    ],
    [
      { steps: [steps.reboot] },
      { steps: [steps.reboot, steps.force] },
      "steps: newly forced reboot",
      "steps: no longer forced reboot",
    ],
    [
      { match: 'node.country == "DE"' },
      { match: null },
      "match: newly matched: node.status = offline, node.country = another",
      "match: no longer matched: node.status = offline, node.country = another",
    ],
    [
      { when: "node.cpu_usage > 0.9" },
      { when: "node.cpu_usage > 0.8" },
      "when: newly matched: node.cpu_usage = 0.801",
      "when: no longer matched: node.cpu_usage = 0.801",
    ],
    [
      { when: 'node.status == "offline" && now - node.last_seen > duration("10m")' },
      { when: 'node.status == "offline" && now - node.last_seen > duration("5m")' },
      "when: newly matched: node.status = offline, node.last_seen 10m ago",
      "when: no longer matched: node.status = offline, node.last_seen 10m ago",
    ],
    [
      { when: 'node.created_at < timestamp("2023-01-01T00:00:00Z")' },
      { when: 'node.created_at < timestamp("2024-01-01T00:00:00Z")' },
      "when: newly matched: node.created_at = 2023-01-01 00:00:00 UTC",
      "when: no longer matched: node.created_at = 2023-01-01 00:00:00 UTC",
    ],
    [
      { when: 'node.uptime_hours > 5 && now > timestamp("2031-01-01T00:00:00Z")' },
      { when: 'node.uptime_hours > 5 && now > timestamp("2030-01-01T00:00:00Z")' },
      "when: newly matched: node.uptime_hours = 6, now = 2030-01-01 00:01:00 UTC",
      "when: no longer matched: node.uptime_hours = 6, now = 2030-01-01 00:01:00 UTC",
    ],
    [
      { when: 'now - timestamp("2025-01-01T00:00:00Z") > duration("60d")' },
      { when: 'now - timestamp("2025-01-01T00:00:00Z") > duration("30d")' },
      "when: newly matched: now = 2025-01-31 00:01:00 UTC",
      "when: no longer matched: now = 2025-01-31 00:01:00 UTC",
    ],
    [
      { when: 'timestamp("2025-01-01T00:00:00Z") - node.created_at > duration("60d")' },
      { when: 'timestamp("2025-01-01T00:00:00Z") - node.created_at > duration("30d")' },
      "when: newly matched: node.created_at = 2024-11-02 00:00:00 UTC",
      "when: no longer matched: node.created_at = 2024-11-02 00:00:00 UTC",
    ],
    [
      { when: 'now > timestamp("2031-01-01T00:00:00Z") && now - node.last_seen > duration("10m")' },
      { when: 'now > timestamp("2030-01-01T00:00:00Z") && now - node.last_seen > duration("10m")' },
      "when: newly matched: node.last_seen = 2029-01-01 00:01:00 UTC, now = 2030-01-01 00:01:00 UTC",
      "when: no longer matched: node.last_seen = 2029-01-01 00:01:00 UTC, now = 2030-01-01 00:01:00 UTC",
    ],
  ])("%j and %j", (less, more, ifMore, ifLess) => {
    expect(differencesAfterChange(less, more)).toEqual([`more ${ifMore}`]);
    expect(differencesAfterChange(more, less)).toEqual([`less ${ifLess}`]);
  });
});

test("a changed condition is shown with an example of a node that it matches and one that it no longer matches", () => {
  expect(
    differencesAfterChange({ when: 'node.status == "offline"' }, { when: 'node.status == "maintenance"' }),
  ).toEqual([
    "more when: newly matched: node.status = maintenance",
    "less when: no longer matched: node.status = offline",
  ]);
});

test("an equivalent condition is reported as changed text", () => {
  const one = 'node.status == "offline" && node.uptime_hours > 5';
  const other = '!(node.uptime_hours <= 5 || node.status != "offline")';
  expect(differencesAfterChange({ when: one }, { when: other })).toEqual([
    "other when: changed text; no sampled node is matched by only one of the two versions",
  ]);
});

test("a difference in one of many fields is found", () => {
  const rest = ["cpu", "memory", "disk"].map((part) => `node.${part}_usage > 0.5 && fleet.median.${part}_usage < 0.9`);
  const when = (hours: number) => `${rest.join(" && ")} && node.uptime_hours > ${hours} && node.active_sessions > 3`;
  const [line, ...more] = differencesAfterChange({ when: when(20) }, { when: when(10) });
  expect(more).toEqual([]);
  expect(line).toMatch(/^more when: newly matched: .*node\.uptime_hours = (?:11|19|20)\b/);
});

test("a new or removed policy has an effect only if it acts on nodes", () => {
  const spec = rebootOffline({ steps: [steps.reboot, steps.notify] });
  const what = 'enforce, reboot, notify oncall, when node.status == "offline"';
  expect(differenceTexts([], [spec])).toEqual([`more policy: new: ${what}`]);
  expect(differenceTexts([spec], [])).toEqual([`less policy: removed: ${what}`]);
  const [dryRun, notifyOnly] = [rebootOffline({ mode: "dry_run" }), rebootOffline({ steps: [steps.notify] })];
  expect(comparePolicies([], [dryRun, { ...notifyOnly, name: "b" }]).map(({ effect }) => effect)).toEqual([
    "other",
    "other",
  ]);
});

test("a query or condition of several lines is shown on one", () => {
  const query = "sum(up)\n  and on() vector(1)\n";
  expect(differencesAfterChange({}, { blockedBy: [{ kind: "query", query }] })).toEqual([
    "less blocked_by: newly query sum(up) and on() vector(1)",
  ]);
  const when = 'node.status == "offline"\n  && node.uptime_hours > 5\n';
  expect(differenceTexts([], [rebootOffline({ when, steps: [steps.reboot] })])).toEqual([
    'more policy: new: enforce, reboot, when node.status == "offline" && node.uptime_hours > 5',
  ]);
});

test("a changed order of policies is reported once", () => {
  const [a, b, c] = ["a", "b", "c"].map((name) => rebootOffline({ name }));
  expect(differenceTexts([a!, b!, c!], [b!, a!, c!])).toEqual(["other order: now b, a, c; was a, b, c"]);
  expect(comparePolicies([a!, b!], [a!, c!, b!]).map(({ key }) => key)).toEqual(["policy"]);
});

test("steps in another order are reported as a whole", () => {
  expect(
    differencesAfterChange({ steps: [steps.disconnect, steps.reboot] }, { steps: [steps.reboot, steps.disconnect] }),
  ).toEqual(["other steps: reboot, disconnect, was disconnect, reboot: order, number or verification"]);
});

test("a changed max_age has no certain effect", () => {
  expect(differencesAfterChange({ maxAgeMs: null }, { maxAgeMs: HOUR_MS })).toEqual([
    "other max_age: 1h, was three intervals",
  ]);
});

test("a changed clear_for has no certain effect", () => {
  // A node that fails again within a longer one gets the next step without another `for`, but its next episode is later.
  const [short, long] = [{ clearForMs: MINUTE_MS }, { clearForMs: HOUR_MS }];
  expect(differencesAfterChange(short, long)).toEqual(["other clear_for: 1h, was 1m"]);
  expect(differencesAfterChange(long, short)).toEqual(["other clear_for: 1m, was 1h"]);
});

test("a change of both match and when is reported under one key", () => {
  const before = { match: 'node.country == "DE"', when: 'node.status == "offline"' };
  const after = { match: 'node.country == "FR"', when: 'node.status == "maintenance"' };
  expect(differencesAfterChange(before, after)).toEqual([
    "more match and when: newly matched: node.status = maintenance, node.country = FR",
    "less match and when: no longer matched: node.status = offline, node.country = DE",
  ]);
});

test("a changed order is reported for the first policy that moved", () => {
  const [a, b, c] = ["a", "b", "c"].map((name) => rebootOffline({ name }));
  expect(comparePolicies([a!, b!, c!], [a!, c!, b!]).map(({ policy, key }) => `${policy} ${key}`)).toEqual(["c order"]);
});

test("numbers of a sampled state are rounded", () => {
  expect(differencesAfterChange({ when: "node.cpu_usage > 0.31" }, { when: "node.cpu_usage > 0.3" })).toEqual([
    "more when: newly matched: node.cpu_usage = 0.301",
  ]);
});
