import { describe, expect, test } from "vitest";
import { compileExpression } from "../../../src/policy/cel/expression.ts";
import { evaluateExpression, evaluatePolicy } from "../../../src/policy/evaluation.ts";
import { buildFleet, type NodeFixture, scopeOf } from "../../metrics/snapshot-fixtures.ts";

const NOW = 1_000_000;
const MAX_AGES: Record<string, number> = { nodes: 300_000, details: 900_000, sessions: 300_000 };
const maxAgeOf = (source: string) => MAX_AGES[source]!;
const SERVICE_TIME_MS = Date.parse("2026-03-01T12:00:00Z");

function expression(text: string) {
  const compiled = compileExpression(text);
  if (!compiled.ok) throw new Error(`${text}: ${compiled.error[0]?.message}`);
  return compiled.value;
}

function subject(node: Partial<NodeFixture>, usageKnown = true) {
  const sketch = { id: "node_1", listedAt: NOW - 1_000, detailedAt: NOW - 2_000, ...node };
  const fleet = { ...buildFleet([sketch], NOW), usageKnown };
  const snapshot = { sequence: 1, at: NOW, fleet, sessions: null, stats: null, hourly: null };
  return scopeOf(snapshot, (at) => SERVICE_TIME_MS + at);
}

function evaluateNode(match: string | null, when: string, node: Partial<NodeFixture>, usageKnown = true) {
  const policy = { match: match === null ? null : expression(match), when: expression(when) };
  const { fields, ...evaluation } = evaluatePolicy(policy, 0, { data: subject(node, usageKnown), maxAgeOf, now: NOW });
  return { ...evaluation, fields: fields() };
}

describe("a verdict", () => {
  test("is true or false if all fields are known, and has the ages and values of the fields", () => {
    const when = 'node.status == "offline" && node.disk_usage > 0.9 && now - node.last_seen > duration("1m")';
    const lastSeenMs = SERVICE_TIME_MS;
    expect(
      evaluateNode('node.country in ["DE"]', when, { status: "offline", country: "DE", diskUsage: 0.95, lastSeenMs }),
    ).toEqual({
      verdict: "true",
      matched: true,
      unknowns: [],
      at: NOW - 2_000,
      newest: NOW - 1_000,
      fields: {
        "node.country": "DE",
        "node.status": "offline",
        "node.disk_usage": 0.95,
        "node.last_seen": "2026-03-01T12:00:00.000Z",
        now: "2026-03-01T12:16:39.000Z",
      },
    });
    expect(evaluateNode(null, when, { status: "offline", diskUsage: 0.9, lastSeenMs }).verdict).toBe("false");
  });

  test.each([
    // The node is offline; its uptime is missing, its usage is not declared, and it has no sessions.
    ['node.status == "offline" || node.uptime_hours > 3', "true"],
    ['node.uptime_hours > 3 || node.status == "offline"', "true"],
    ['node.status == "online" || node.uptime_hours > 3', "unknown"],
    ['node.status == "online" && node.uptime_hours > 3', "false"],
    ['node.uptime_hours > 3 && node.status == "online"', "false"],
    ['node.status == "offline" && node.uptime_hours > 3', "unknown"],
    ['!(node.status == "offline" || node.uptime_hours > 3)', "false"],
    ['!(node.status == "offline" && node.uptime_hours > 3)', "unknown"],
    ['node.cpu_usage > 0.5 && node.uptime_hours > 3 && node.status == "online"', "false"],
    ['(node.cpu_usage > 0.5 || node.status == "offline") && node.status != "online"', "true"],
    ['node.status == "offline" ? node.status != "online" : node.uptime_hours > 3', "true"],
    ['node.status == "online" ? node.status != "online" : node.uptime_hours > 3', "unknown"],
    ['node.uptime_hours > 3 ? node.status == "offline" : node.status != "online"', "unknown"],
    ["node.uptime_hours in [1, 2]", "unknown"],
    ['!(node.uptime_hours in [1, 2]) || node.status in ["offline"]', "true"],
    ["node.uptime_hours != 3", "unknown"],
    ['node.version.startsWith("1") && node.status == "online"', "false"],
    ["ratio(node.bandwidth_gb, node.active_sessions) > 1", "unknown"],
    ['ratio(node.bandwidth_gb, node.active_sessions) > 1 && node.status == "online"', "false"],
  ])("is unknown unless the other operand determines it: %s is %s", (when, verdict) => {
    expect(evaluateNode(null, when, { status: "offline", activeSessions: 0, bandwidthGb: 1 }, false).verdict).toBe(
      verdict,
    );
  });

  test("that is known has no unknown fields, and the age of the fields that determine it", () => {
    const when = 'node.status == "online" && node.cpu_usage > 0.9';
    const node = { status: "offline", cpuUsage: 0.99, listedAt: NOW - 1_000, detailedAt: NOW - 900_001 } as const;
    expect(evaluateNode(null, when, node)).toMatchObject({ verdict: "false", unknowns: [], at: NOW - 1_000 });
    expect(evaluateNode(null, when, { ...node, status: "online" })).toMatchObject({
      verdict: "unknown",
      unknowns: [{ field: "node.cpu_usage", why: "stale" }],
      at: NOW - 900_001,
    });
  });

  test("names every unknown field with its reason", () => {
    const when = "node.cpu_usage > 0.9 && node.uptime_hours > 1 && now > node.last_seen && node.active_sessions > 1";
    const node = { uptimeHours: 1, lastSeenMs: SERVICE_TIME_MS + 2 * NOW, listedAt: NOW - 300_001 };
    expect(evaluateNode(null, when, node, false).unknowns).toEqual([
      { field: "node.cpu_usage", why: "undeclared_scale" },
      { field: "node.uptime_hours", why: "stale" },
      { field: "now", why: "stale" },
      { field: "node.last_seen", why: "in_future" },
      { field: "node.active_sessions", why: "missing" },
    ]);
  });

  test("is unknown if the data is older than max_age, but not if it is exactly as old", () => {
    const at = (age: number) => evaluateNode(null, "node.uptime_hours > 1", { uptimeHours: 5, listedAt: NOW - age });
    expect(at(300_000)).toMatchObject({ verdict: "true", at: NOW - 300_000 });
    expect(at(300_001)).toMatchObject({ verdict: "unknown", at: NOW - 300_001, fields: { "node.uptime_hours": 5 } });
  });

  test("treats a stale detail as stale even if the node was listed just now", () => {
    const node = { cpuUsage: 0.99, uptimeHours: 5, listedAt: NOW, detailedAt: NOW - 900_001 };
    expect(evaluateNode(null, "node.cpu_usage > 0.9", node)).toMatchObject({
      verdict: "unknown",
      unknowns: [{ field: "node.cpu_usage", why: "stale" }],
    });
    expect(evaluateNode(null, "node.uptime_hours > 1", node).verdict).toBe("true");
    expect(evaluateNode(null, "node.cpu_usage > 0.9", { ...node, detailedAt: NOW - 900_000 }).verdict).toBe("true");
  });

  test("is unknown because of a ratio by 0, with the expression as the cause", () => {
    const when = "node.active_sessions > 0 || ratio(node.bandwidth_gb, node.active_sessions) > 1";
    const error = { verdict: "unknown", unknowns: [{ field: "the expression", why: "error" }] };
    expect(evaluateNode(null, when, { activeSessions: 0, bandwidthGb: 1 })).toMatchObject(error);
  });

  test("has the time of the evaluation if no field has a value", () => {
    expect(evaluateNode(null, "node.uptime_hours > 1", {})).toMatchObject({
      verdict: "unknown",
      at: NOW,
      newest: NOW,
      fields: {},
    });
  });
});

test("a verdict has the age of the oldest data of `match` and `when`", () => {
  const node = { uptimeHours: 5, cpuUsage: 0.5 };
  const ages = { verdict: "true", at: NOW - 2_000, newest: NOW - 1_000 };
  expect(evaluateNode("node.cpu_usage > 0.1", "node.uptime_hours > 1", node)).toMatchObject(ages);
  expect(evaluateNode("node.uptime_hours > 1", "node.cpu_usage > 0.1", node)).toMatchObject(ages);
});

describe("a policy whose `match` does not select the node", () => {
  test("is false, and does not evaluate `when`", () => {
    expect(evaluateNode('node.country == "DE"', "node.cpu_usage > 0.9", { country: "FR" })).toEqual({
      verdict: "false",
      matched: false,
      unknowns: [],
      at: NOW - 1_000,
      newest: NOW - 1_000,
      fields: { "node.country": "FR" },
    });
  });

  test("is false if `match` is unknown and `when` is false", () => {
    expect(evaluateNode('node.country == "DE"', "node.uptime_hours > 7", { uptimeHours: 5 })).toMatchObject({
      verdict: "false",
      matched: null,
      unknowns: [],
    });
  });

  test("is unknown if `match` is unknown and `when` is not false", () => {
    const unknowns = [{ field: "node.country", why: "missing" }];
    expect(evaluateNode('node.country == "DE"', "node.uptime_hours > 1", { uptimeHours: 5 })).toMatchObject({
      verdict: "unknown",
      matched: null,
      unknowns,
    });
  });
});

test("`expect` and `safety.protected` have the same three values", () => {
  const ask = (node: Partial<NodeFixture>) =>
    evaluateExpression(expression('node.name.startsWith("vip-")'), 0, { data: subject(node), maxAgeOf, now: NOW })
      .verdict;
  expect([ask({ name: "vip-1" }), ask({ name: "edge-1" }), ask({})]).toEqual(["true", "false", "unknown"]);
});
