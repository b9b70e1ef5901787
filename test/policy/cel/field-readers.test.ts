import { describe, expect, test } from "vitest";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import { FIELDS, findField } from "../../../src/policy/cel/fields.ts";
import { fleetAggregates } from "../../../src/policy/cel/fleet-aggregates.ts";
import { buildFleet, buildSessions, type NodeFixture, scopeOf } from "../../metrics/snapshot-fixtures.ts";

const SERVICE_TIME_MS = Date.parse("2026-03-01T12:00:00Z");
const serviceTime = (at: number) => SERVICE_TIME_MS + at;

const completeNode: NodeFixture = {
  id: "node_1",
  name: "vip-1",
  country: "DE",
  region: "eu-west",
  version: "1.2.3",
  ipAddress: "192.0.2.1",
  status: "offline",
  lastSeenMs: SERVICE_TIME_MS - 60_000,
  uptimeHours: 7,
  activeSessions: 3,
  bandwidthGb: 1.5,
  cpuUsage: 0.1,
  memoryUsage: 0.2,
  diskUsage: 0.3,
  createdAtMs: SERVICE_TIME_MS - 9_000_000,
  updatedAtMs: SERVICE_TIME_MS - 8_000_000,
  listedAt: 1_000,
  detailedAt: 500,
};

function snapshotOf(parts: Partial<Snapshot>): Snapshot {
  return { sequence: 1, at: 2_000, fleet: buildFleet([]), sessions: null, stats: null, hourly: null, ...parts };
}

/** Reads fields of the first node, regardless of their age. */
function reader(parts: Partial<Snapshot>, time: (at: number) => number | null = serviceTime, freshFrom = -Infinity) {
  const scope = scopeOf(snapshotOf(parts), time);
  return (name: string) => findField(name)!.read(scope, 0, freshFrom);
}

describe("a field of the node", () => {
  test("has the value and age of its source, the list or the detail", () => {
    const read = reader({ fleet: buildFleet([completeNode], 800) });
    const listed = (value: unknown) => ({ value, at: 1_000 });
    const detailed = (value: unknown) => ({ value, at: 500 });
    expect(
      Object.fromEntries(FIELDS.filter(({ name }) => /^(node|now)/.test(name)).map(({ name }) => [name, read(name)])),
    ).toEqual({
      "node.id": listed("node_1"),
      "node.name": listed("vip-1"),
      "node.status": listed("offline"),
      "node.country": listed("DE"),
      "node.region": listed("eu-west"),
      "node.ip_address": listed("192.0.2.1"),
      "node.version": listed("1.2.3"),
      "node.last_seen": listed(SERVICE_TIME_MS - 60_000),
      "node.uptime_hours": listed(7),
      "node.active_sessions": listed(3),
      "node.bandwidth_gb": listed(1.5),
      "node.cpu_usage": detailed(0.1),
      "node.memory_usage": detailed(0.2),
      "node.disk_usage": detailed(0.3),
      "node.created_at": detailed(SERVICE_TIME_MS - 9_000_000),
      "node.updated_at": detailed(SERVICE_TIME_MS - 8_000_000),
      now: listed(SERVICE_TIME_MS + 1_000),
    });
  });

  test("is missing if no record has it, and so is an unknown status", () => {
    const read = reader({ fleet: buildFleet([{ id: "node_1", status: "unknown", listedAt: 5 }], null) });
    const there = FIELDS.filter(({ name }) => typeof read(name) !== "string").map(({ name }) => name);
    expect(there).toEqual(["node.id", "now"]);
    expect(read("node.status")).toBe("missing");
    expect(read("node.cpu_usage")).toBe("missing");
  });

  test("of usage has an undeclared scale if none is valid, and so do medians", () => {
    const read = reader({ fleet: { ...buildFleet([completeNode]), usageKnown: false } });
    const undeclared = FIELDS.filter(({ name }) => read(name) === "undeclared_scale");
    expect(undeclared).toEqual(FIELDS.filter(({ isUsage }) => isUsage));
    expect(undeclared).toHaveLength(9);
  });

  test("is not a timestamp if it is more than a minute after its own observation", () => {
    const seen = (lastSeenMs: number) =>
      reader({ fleet: buildFleet([{ ...completeNode, lastSeenMs }]) })("node.last_seen");
    const observed = serviceTime(1_000);
    expect(seen(observed + 60_000)).toEqual({ value: observed + 60_000, at: 1_000 });
    expect(seen(observed + 60_001)).toBe("in_future");
    expect(
      reader({ fleet: buildFleet([{ ...completeNode, createdAtMs: serviceTime(500) + 60_001 }]) })("node.created_at"),
    ).toBe("in_future");
  });

  describe("is a timestamp that is moved if the service's clock was set ahead after it", () => {
    const seen = (stepMs: number, lastSeenMs: number) =>
      reader(
        { fleet: buildFleet([{ ...completeNode, lastSeenMs }]) },
        (at) => serviceTime(at) + (at < 0 ? 0 : stepMs),
      )("node.last_seen");

    test("by the step if it was shown before", () => {
      expect(seen(60_000, serviceTime(-5_000))).toEqual({ value: serviceTime(55_000), at: 1_000 });
      // The service's clock is set after the request and before its response.
      expect(seen(60_000, serviceTime(5_000))).toEqual({ value: serviceTime(65_000), at: 1_000 });
      expect(seen(600_000, serviceTime(250_000))).toEqual({ value: serviceTime(850_000), at: 1_000 });
      expect(seen(60_000, serviceTime(-500_000))).toEqual({ value: serviceTime(-440_000), at: 1_000 });
    });

    test("not if it was shown since, or never, or the clock was set back", () => {
      expect(seen(60_000, serviceTime(60_500))).toEqual({ value: serviceTime(60_500), at: 1_000 });
      expect(seen(600_000, serviceTime(310_000))).toEqual({ value: serviceTime(310_000), at: 1_000 });
      expect(seen(-60_000, serviceTime(-70_000))).toEqual({ value: serviceTime(-70_000), at: 1_000 });
    });
  });
});

test("a fleet has no counts or medians before the first complete walk, and an empty region has none", () => {
  const unsettled = fleetAggregates(buildFleet([completeNode], null));
  expect([unsettled.counts(null), unsettled.median(null, "cpuUsage", 0)]).toEqual([null, null]);
  const settled = fleetAggregates(buildFleet([completeNode], 800));
  expect(settled.counts("eu-west")).toEqual({ value: { nodes: 1, online: 0 }, at: 800 });
  expect([settled.counts("nowhere"), settled.median("nowhere", "cpuUsage", 0)]).toEqual([null, null]);
});

test("the median of a large fleet is prepared in many steps, and is the same without preparation", () => {
  const nodes = Array.from({ length: 3_000 }, (_, index) => ({
    ...completeNode,
    id: `node_${index}`,
    region: `region-${index % 3}`,
    cpuUsage: ((index * 7_919) % 1_009) / 1_009,
  }));
  const scopes = [0, 1].map(() => scopeOf(snapshotOf({ fleet: buildFleet(nodes, 800) }), serviceTime));
  const prepare = findField("fleet.median.cpu_usage")!.prepare!(scopes[0]!, 0);
  expect([...prepare].length).toBeGreaterThan(5);
  for (const region of [null, "region-1"]) {
    const [prepared, computed] = scopes.map(({ aggregates }) => aggregates.median(region, "cpuUsage", 0));
    expect(prepared).toEqual(computed);
    expect(prepared!.value).toBeGreaterThan(0);
  }
});

test("a median depends on the requested age and not on earlier requests", () => {
  const nodes = [0.1, 0.2, 0.9].map((cpuUsage, index) => ({
    ...completeNode,
    id: `node_${index}`,
    cpuUsage,
    detailedAt: index * 100,
  }));
  const aggregates = fleetAggregates(buildFleet(nodes, 800));
  const values = [0, 1, 100, 101, 0, 100].map((from) => aggregates.median(null, "cpuUsage", from)?.value ?? null);
  expect(values.map((value) => value?.toFixed(2) ?? null)).toEqual(["0.20", "0.55", "0.55", null, "0.20", "0.55"]);
});

test("`now` is missing until the service's clock is known", () => {
  const read = reader({ fleet: buildFleet([completeNode]) }, () => null);
  expect(read("now")).toBe("missing");
  expect(read("node.last_seen")).toEqual({ value: completeNode.lastSeenMs, at: 1_000 });
});

test("a node is read from its slot even with empty slots", () => {
  const scope = scopeOf(snapshotOf({ fleet: buildFleet([null, completeNode]) }), serviceTime);
  expect(findField("node.name")!.read(scope, 1, 0)).toEqual({ value: "vip-1", at: 1_000 });
});

describe("sessions of a node", () => {
  const names = ["total", "active", "connecting", "closed", "error", "timeout", "failed_ratio"];
  function sessions(
    counts: Record<string, number> | null,
    { failedListed = true, id = "node_1", quietWalks = 0, isFolded = false, isUnassigned = false } = {},
  ) {
    const node = { id, counts: counts ?? {}, quietWalks };
    const view =
      counts === null
        ? null
        : buildSessions([null, node], { failedListed, isFolded, isUnassigned, settledAt: 900, observedFrom: 700 });
    const read = reader({ fleet: buildFleet([completeNode]), sessions: view });
    return Object.fromEntries(
      names.map((name) => {
        const datum = read(`sessions.${name}`);
        if (typeof datum !== "string") expect(datum.at).toBe(700);
        return [name, typeof datum === "string" ? datum : datum.value];
      }),
    );
  }

  test("are counted by state in the last complete walk, and are as old as its start", () => {
    const counts = { active: 4, connecting: 1, closed: 2, error: 2, timeout: 1 };
    expect(sessions(counts)).toEqual({ ...counts, total: 10, failed_ratio: 0.3 });
  });

  test("are missing before the first complete walk", () => {
    expect(new Set(Object.values(sessions(null)))).toEqual(new Set(["missing"]));
  });

  test("are zero if the walk found none, and their failed ratio is missing", () => {
    const none = { active: 0, connecting: 0, closed: 0, error: 0, timeout: 0, total: 0, failed_ratio: "missing" };
    expect(sessions({ active: 5 }, { id: "node_2" })).toEqual(none);
  });

  test("are missing if the walk counted sessions of unnamed nodes, unless it names this one", () => {
    expect(new Set(Object.values(sessions({ active: 5 }, { id: "node_2", isFolded: true })))).toEqual(
      new Set(["missing"]),
    );
    expect(sessions({ active: 5 }, { isFolded: true })).toMatchObject({ active: 5, total: 5 });
  });

  test("are unknown if too many sessions name no node of the fleet, even if some name this one", () => {
    expect(new Set(Object.values(sessions({ active: 5 }, { isUnassigned: true })))).toEqual(new Set(["unassigned"]));
  });

  test("have no known failures until the list has shown a failed session", () => {
    const failures = { error: "missing", timeout: "missing", failed_ratio: "missing" };
    expect(sessions({ active: 5 }, { failedListed: false })).toMatchObject({ active: 5, total: 5, ...failures });
  });

  test("that failed earlier and are still listed make failures unknown", () => {
    const past = { error: "past", timeout: "past", failed_ratio: "past" };
    const known = { active: 5, total: 8 };
    expect(sessions({ active: 5, error: 2, timeout: 1 }, { quietWalks: 2 })).toMatchObject({ ...known, ...past });
    expect(sessions({ active: 5, error: 2 }, { quietWalks: 1 })).toMatchObject({ error: "past", timeout: 0 });
    expect(sessions({ active: 5 }, { quietWalks: 1 })).toMatchObject({ error: 0, timeout: 0, failed_ratio: 0 });
  });

  test("that failed no longer count after three walks without a new failure", () => {
    const counts = { active: 5, error: 2, timeout: 1 };
    const none = { active: 5, total: 8, error: 0, timeout: 0, failed_ratio: 0 };
    expect(sessions(counts, { quietWalks: 3 })).toMatchObject(none);
    expect(sessions(counts, { quietWalks: 255 })).toMatchObject(none);
  });

  test("have no known counts while the state of one is unknown", () => {
    expect(sessions({ active: 5, unknown: 1 })).toMatchObject({ total: 6, active: "missing", failed_ratio: "missing" });
  });
});

describe("the fleet and the region of a node", () => {
  const nodes: NodeFixture[] = [
    { id: "node_1", region: "a", country: "DE", status: "online", cpuUsage: 0.9, detailedAt: 100 },
    { id: "node_2", region: "a", country: "FR", status: "offline", cpuUsage: 0.1, detailedAt: 300 },
    { id: "node_3", region: "a", country: "FR", status: "unknown", cpuUsage: 0.5, detailedAt: 200 },
    { id: "node_4", region: "b", status: "online", cpuUsage: 0.2, detailedAt: 300 },
    { id: "node_5", status: "online" },
  ];
  const fleet = buildFleet([...nodes.slice(0, 1), null, ...nodes.slice(1)], 800);

  test("are counted as of the last complete walk; a region can span countries", () => {
    const read = reader({ fleet });
    expect(read("fleet.nodes")).toEqual({ value: 5, at: 800 });
    expect(read("fleet.online")).toEqual({ value: 3, at: 800 });
    expect(read("fleet.online_ratio")).toEqual({ value: 0.6, at: 800 });
    expect(read("region.nodes")).toEqual({ value: 3, at: 800 });
    expect(read("region.online")).toEqual({ value: 1, at: 800 });
    expect(read("region.online_ratio")).toEqual({ value: 1 / 3, at: 800 });
  });

  test("have the median of the fresh values, with the age of the oldest", () => {
    expect(reader({ fleet })("region.median.cpu_usage")).toEqual({ value: 0.5, at: 100 });
    expect(reader({ fleet }, serviceTime, 200)("region.median.cpu_usage")).toEqual({ value: 0.3, at: 200 });
    expect(reader({ fleet })("fleet.median.cpu_usage")).toEqual({ value: 0.35, at: 100 });
  });

  test("have no median if fewer than half of the nodes have a fresh value", () => {
    expect(reader({ fleet }, serviceTime, 300)("region.median.cpu_usage")).toBe("missing");
    expect(reader({ fleet }, serviceTime, 201)("fleet.median.cpu_usage")).toBe("missing");
    expect(
      reader({ fleet: buildFleet(nodes.slice(0, 2), 800) }, serviceTime, 300)("fleet.median.cpu_usage"),
    ).toMatchObject({ value: 0.1 });
  });

  test("have the same median regardless of the order of requests", () => {
    const { median } = fleetAggregates(fleet);
    const ask = (freshFrom: number) => median("a", "cpuUsage", freshFrom)?.value ?? null;
    const asked = [301, 50, 200, 100, 101, 201, 300, 99, 200, 101, 50, 301];
    expect(asked.map(ask)).toEqual([null, 0.5, 0.3, 0.5, 0.3, null, null, 0.5, 0.3, 0.3, 0.5, null]);
    for (let freshFrom = 0; freshFrom < 400; freshFrom++) {
      expect(fleetAggregates({ ...fleet }).median("a", "cpuUsage", freshFrom)).toEqual(
        median("a", "cpuUsage", freshFrom),
      );
    }
  });

  test("are missing before a complete walk, and for a node without a region", () => {
    const names = FIELDS.map(({ name }) => name).filter((name) => /^(fleet|region)/.test(name));
    const unsettled = reader({ fleet: { ...fleet, settledAt: null } });
    expect(new Set(names.map(unsettled))).toEqual(new Set(["missing"]));
    const nowhere = reader({ fleet: buildFleet([...nodes].reverse(), 800) });
    expect(nowhere("region.nodes")).toBe("missing");
    expect(nowhere("region.median.cpu_usage")).toBe("missing");
    expect(nowhere("fleet.nodes")).toMatchObject({ value: 5 });
  });
});
