import { describe, expect, test } from "vitest";
import { formatDuration } from "../../src/base/duration.ts";
import { findField } from "../../src/policy/cel/fields.ts";
import { mustCompile } from "../../src/policy/policy.ts";
import { isTrueIn, SAMPLE_NOW, sampleStates } from "../../src/policy/policy-diff-samples.ts";

/** The values of a field over all states of a condition, in the order in which they come. */
const valuesOf = (name: string, text: string) => [
  ...new Set([...sampleStates([mustCompile(text)])].map((state) => state.get(findField(name)!))),
];

/** The same of a timestamp, as its age. */
const agesOf = (name: string, text: string) =>
  valuesOf(name, text).map((at) => formatDuration(SAMPLE_NOW - Number(at)));

describe("sampled values are on both sides of the compared constants:", () => {
  test("integers, none of them negative", () => {
    expect(valuesOf("node.uptime_hours", "node.uptime_hours > 5")).toEqual([0, 4, 5, 6]);
    expect(valuesOf("node.uptime_hours", "node.uptime_hours > 0")).toEqual([0, 1]);
    expect(valuesOf("node.uptime_hours", "node.uptime_hours > 2.5")).toEqual([0, 1, 4]);
  });

  test("ratios, from 0 to 1", () => {
    expect(valuesOf("node.cpu_usage", "node.cpu_usage > 0.5")).toEqual([0, 0.499, 0.5, 0.501, 1]);
    expect(valuesOf("node.cpu_usage", "node.cpu_usage < 1.0")).toEqual([0, 0.999, 1]);
  });

  test("other numbers from 0", () => {
    expect(valuesOf("node.bandwidth_gb", "node.bandwidth_gb > 2.0")).toEqual([0, 1, 1.999, 2, 2.001]);
    expect(valuesOf("node.bandwidth_gb", "node.bandwidth_gb > 0.0")).toEqual([0, 0.001, 1]);
  });

  test("timestamps of the past", () => {
    const seen = (duration: string) => agesOf("node.last_seen", `now - node.last_seen > duration("${duration}")`);
    expect(seen("10m")).toEqual(["1y", "11m", "10m", "9m", "0s"]);
    expect(seen("30s")).toEqual(["1y", "1m30s", "30s", "0s"]);
  });

  test("timestamps around a constant time, which may be later than the usual time of the samples", () => {
    const times = (name: string, text: string) => valuesOf(name, text).map((at) => new Date(Number(at)).toISOString());
    expect(times("node.created_at", 'node.created_at < timestamp("2023-01-01T00:00:00Z")')).toEqual([
      ...["2022-12-31T23:59:00.000Z", "2023-01-01T00:00:00.000Z", "2023-01-01T00:01:00.000Z"],
      ...["2025-01-05T12:00:00.000Z", "2026-01-05T12:00:00.000Z"],
    ]);
    expect(times("node.created_at", 'node.created_at < timestamp("2030-01-01T00:00:00Z")')).toEqual([
      ...["2029-01-02T00:00:00.000Z", "2029-12-31T23:59:00.000Z", "2030-01-01T00:00:00.000Z"],
      ...["2030-01-01T00:01:00.000Z", "2030-01-02T00:00:00.000Z"],
    ]);
    expect(times("now", 'now > timestamp("2030-01-01T00:00:00Z") && node.uptime_hours > 5')).toEqual([
      ...["2029-12-31T23:59:00.000Z", "2030-01-01T00:00:00.000Z", "2030-01-01T00:01:00.000Z"],
      "2030-01-02T00:00:00.000Z",
    ]);
  });

  test("strings, and strings that begin or end with the constants", () => {
    expect(valuesOf("node.version", 'node.version == "1.2"')).toEqual(["1.2", "another", "1.2-x", "x-1.2"]);
    expect(valuesOf("node.version", 'node.version in ["1.2", "1.3"]')).toEqual([
      ...["1.2", "1.3", "another", "1.2-x", "x-1.2", "1.3-x", "x-1.3"],
    ]);
    expect(valuesOf("node.name", 'node.name.endsWith("-b")')).toEqual(["-b", "another", "-b-x", "x--b"]);
  });

  test("all known statuses", () => {
    expect(valuesOf("node.status", 'node.status == "offline"')).toEqual([
      ...["online", "offline", "quarantined", "rebooting", "maintenance"],
    ]);
  });

  test("of two fields, each for its own comparisons", () => {
    const text = 'node.uptime_hours > 5 && node.active_sessions < 90 && node.version == "1.2"';
    expect(valuesOf("node.uptime_hours", text)).toEqual([0, 4, 5, 6]);
    expect(valuesOf("node.active_sessions", text)).toEqual([0, 89, 90, 91]);
    expect(valuesOf("node.version", text)).toEqual(["1.2", "another", "1.2-x", "x-1.2"]);
  });

  test("of a field compared with constants of several types, those of its type", () => {
    const text = 'node.uptime_hours > (node.version == "1.2" ? 5 : 7)';
    expect(valuesOf("node.uptime_hours", text)).toEqual([0, 4, 5, 6, 7, 8]);
    expect(valuesOf("node.version", text)).toEqual(["1.2", "another", "1.2-x", "x-1.2"]);
  });
});

const pairsOf = (text: string) => [...sampleStates([mustCompile(text)])].map((state) => [...state.values()].join(" "));

test("all combinations are sampled once if there are few", () => {
  const pairs = pairsOf("node.uptime_hours > 5 && node.active_sessions < 90");
  expect(pairs).toHaveLength(16);
  expect(new Set(pairs).size).toBe(16);
});

test("20,000 of many combinations are sampled, always the same", () => {
  const numbers = ["node.uptime_hours", "node.active_sessions", "sessions.total", "sessions.active", "fleet.nodes"];
  const text = [...numbers, "fleet.online", "region.nodes", "region.online"].map((name) => `${name} > 5`).join(" && ");
  const states = pairsOf(text);
  expect(states).toHaveLength(20_000);
  expect(new Set(states).size).toBeGreaterThan(15_000);
  expect(pairsOf(text)).toEqual(states);
});

test("a condition holds in a sampled state only if it is true, not if it is unknown", () => {
  const [condition, doubtful] = ["node.uptime_hours > 5", "ratio(node.uptime_hours, node.active_sessions) < 1"].map(
    mustCompile,
  );
  const state = (hours: number, sessions: number) =>
    new Map([
      [findField("node.uptime_hours")!, hours],
      [findField("node.active_sessions")!, sessions],
    ]);
  expect([5, 6].map((hours) => isTrueIn(condition!, state(hours, 1)))).toEqual([false, true]);
  expect([0, 9].map((sessions) => isTrueIn(doubtful!, state(1, sessions)))).toEqual([false, true]);
});

describe("with a constant time and a constant duration in one comparison,", () => {
  const timesOf = (name: string, text: string) =>
    valuesOf(name, text).map((at) => new Date(Number(at)).toISOString().slice(0, 16));

  test("times are sampled around the sum and the difference of both", () => {
    expect(timesOf("now", 'now - timestamp("2025-01-01T00:00:00Z") > duration("30d")')).toEqual([
      ...["2024-12-01T23:59", "2024-12-02T00:00", "2024-12-02T00:01"],
      ...["2024-12-31T23:59", "2025-01-01T00:00", "2025-01-01T00:01"],
      ...["2025-01-30T23:59", "2025-01-31T00:00", "2025-01-31T00:01", "2026-01-05T12:00"],
    ]);
    expect(timesOf("node.created_at", 'node.created_at - timestamp("2030-01-01T00:00:00Z") > duration("1d")')).toEqual(
      expect.arrayContaining(["2030-01-01T23:59", "2030-01-02T00:00", "2030-01-02T00:01"]),
    );
  });

  test("times that a date can't represent are left out", () => {
    const text = 'timestamp("9999-01-01T00:00:00Z") - node.created_at > duration("280000y")';
    expect(() => timesOf("node.created_at", text)).not.toThrow();
  });
});

test("no timestamp is after the time of its sample, and each age is sampled at every time", () => {
  const text = 'now > timestamp("2030-01-01T00:00:00Z") && now - node.last_seen > duration("10m")';
  const [now, lastSeen] = [findField("now")!, findField("node.last_seen")!];
  const ages = Map.groupBy(
    [...sampleStates([mustCompile(text)])].map((state) => ({
      at: state.get(now)!,
      age: formatDuration(Number(state.get(now)) - Number(state.get(lastSeen))),
    })),
    ({ at }) => at,
  );
  expect([...ages.values()].map((states) => states.map(({ age }) => age))).toEqual(
    Array.from({ length: 4 }, () => ["1y", "11m", "10m", "9m", "0s"]),
  );
});
