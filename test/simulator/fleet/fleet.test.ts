import { describe, expect, test } from "vitest";
import type { FleetRates } from "../../../src/config/schema/scenario.ts";
import { demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { type ActualNode, actualNodes, actualSessions } from "../../harness/simulator/actual-state.ts";
import { createTestClient, json, noFailureRates, START, scenarioWith, type TestClient } from "../api-caller.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const NEVER = Number.POSITIVE_INFINITY;

/** A fleet in which every node fails within minutes and, unless `change` says otherwise, does not recover. */
const failingFleet = (change: Partial<FleetRates> = {}) =>
  scenarioWith({
    nodes: 100,
    sessions: 500,
    rates: {
      ...noFailureRates,
      faultEveryMs: 10 * MINUTE_MS,
      selfHealing: 0,
      incurable: 0,
      repairMs: NEVER,
      ...change,
    },
  });

const advance = (client: TestClient, ms: number): ActualNode[] => {
  client.now += ms;
  client.get("/v1/sessions/stats");
  return [...actualNodes(client.service)];
};

const nodeNow = (client: TestClient, id: string): ActualNode => advance(client, 0).find((node) => node.id === id)!;

const openSessionsOf = (client: TestClient, id: string): number =>
  [...actualSessions(client.service)].filter(
    ({ node_id, status }) => node_id === id && /active|connecting/.test(status),
  ).length;

/** Advances time until a node matches, and returns it. */
function findNodeOverTime(client: TestClient, matches: (node: ActualNode) => boolean): ActualNode {
  for (let minute = 0; minute < 600; minute += 1) {
    const found = advance(client, MINUTE_MS).find(matches);
    if (found !== undefined) return found;
  }
  throw new Error("no node matched");
}

describe("quarantine", () => {
  test("ends and counts the node's sessions until it expires", () => {
    const client = createTestClient(scenarioWith());
    const node = json(client.get("/v1/nodes")).data.find((one: { active_sessions: number }) => one.active_sessions > 3);
    const reply = json(client.post(`/v1/nodes/${node.id}/quarantine`, { reason: "a trial", duration_minutes: 7 }));
    expect(reply).toEqual({
      success: true,
      message: `Node ${node.id} has been quarantined`,
      reason: "a trial",
      duration_minutes: 7,
      disconnected_sessions: node.active_sessions,
    });
    advance(client, 7 * MINUTE_MS - 1);
    expect([nodeNow(client, node.id).status, openSessionsOf(client, node.id)]).toEqual(["quarantined", 0]);
    advance(client, 1);
    expect(nodeNow(client, node.id).status).toBe("online");
    advance(client, 30 * MINUTE_MS);
    expect(openSessionsOf(client, node.id)).toBeGreaterThan(0);
  });

  test("is replaced by a second one, survives a reboot, and does not end a failure", () => {
    const client = createTestClient(failingFleet());
    const { id } = findNodeOverTime(
      client,
      ({ status, failureMode }) => status === "offline" && failureMode === "outage",
    );
    client.post(`/v1/nodes/${id}/quarantine`, { reason: "x", duration_minutes: 60 });
    client.post(`/v1/nodes/${id}/quarantine`, { reason: "x", duration_minutes: 10 });
    expect(nodeNow(client, id).status).toBe("quarantined");
    advance(client, 10 * MINUTE_MS);
    expect(nodeNow(client, id).status).toBe("offline");
    client.post(`/v1/nodes/${id}/quarantine`, { reason: "x", duration_minutes: 60 });
    client.post(`/v1/nodes/${id}/reboot`, { force: true });
    expect(nodeNow(client, id).status).toBe("rebooting");
    advance(client, 2 * MINUTE_MS);
    expect(nodeNow(client, id).status).toBe("quarantined");
  });
});

describe("reboot", () => {
  test("ends the sessions, takes rebootMs, and resets the uptime", () => {
    const client = createTestClient(scenarioWith());
    const before = json(client.get("/v1/nodes")).data.find((one: { uptime_hours: number }) => one.uptime_hours > 0);
    expect(json(client.post(`/v1/nodes/${before.id}/reboot`, { force: false }))).toMatchObject({ success: true });
    const during = advance(client, 2 * MINUTE_MS - 1).find(({ id }) => id === before.id)!;
    expect([during.status, openSessionsOf(client, before.id)]).toEqual(["rebooting", 0]);
    expect(client.post(`/v1/nodes/${before.id}/reboot`).status).toBe(409);
    const done = advance(client, 1).find(({ id }) => id === before.id)!;
    expect([done.status, done.uptime_hours, done.last_seen]).toEqual(["online", 0, new Date(client.now).toISOString()]);
    const reported = HOUR_MS + 15_000;
    expect(advance(client, reported).find(({ id }) => id === before.id)!.uptime_hours).toBe(1);
  });

  test("ends a failure with the remedy reboot; forced_reboot requires a forced one", () => {
    const client = createTestClient(failingFleet({ flapping: 0 }));
    const graceful = findNodeOverTime(client, ({ status, remedy }) => status === "offline" && remedy === "reboot");
    client.post(`/v1/nodes/${graceful.id}/reboot`, { force: false });
    advance(client, 2 * MINUTE_MS);
    expect(nodeNow(client, graceful.id)).toMatchObject({ status: "online", failureMode: "none", uptime_hours: 0 });
    const forced = findNodeOverTime(client, ({ status, remedy }) => status === "offline" && remedy === "forced_reboot");
    client.post(`/v1/nodes/${forced.id}/reboot`, { force: false });
    expect(nodeNow(client, forced.id)).toMatchObject({ status: "offline", last_seen: forced.last_seen });
    client.post(`/v1/nodes/${forced.id}/reboot`, { force: true });
    advance(client, 2 * MINUTE_MS);
    expect(nodeNow(client, forced.id)).toMatchObject({ status: "online", failureMode: "none", uptime_hours: 0 });
  });

  test("restarts a responsive node even if only a forced one ends its failure", () => {
    const client = createTestClient(failingFleet());
    const { id } = findNodeOverTime(client, ({ status, failureMode, remedy }) => {
      return status === "online" && failureMode === "leak" && remedy === "forced_reboot";
    });
    client.post(`/v1/nodes/${id}/reboot`, { force: false });
    advance(client, 2 * MINUTE_MS);
    expect(nodeNow(client, id)).toMatchObject({ status: "online", failureMode: "leak", uptime_hours: 0 });
    client.post(`/v1/nodes/${id}/reboot`, { force: true });
    advance(client, 2 * MINUTE_MS);
    expect(nodeNow(client, id)).toMatchObject({ status: "online", failureMode: "none", uptime_hours: 0 });
  });

  test("leaves a node that only an operator can repair offline, with its last uptime and last_seen", () => {
    const client = createTestClient(failingFleet({ incurable: 1, flapping: 0 }));
    const broken = findNodeOverTime(client, ({ status, uptime_hours }) => status === "offline" && uptime_hours! > 0);
    client.post(`/v1/nodes/${broken.id}/reboot`, { force: true });
    advance(client, 2 * MINUTE_MS);
    const { status, uptime_hours, last_seen } = broken;
    expect(nodeNow(client, broken.id)).toMatchObject({ status, uptime_hours, last_seen });
  });

  test.each([
    ["empty_object", 200, "{}"],
    ["no_content", 204, ""],
  ] as const)("and disconnect are answered in the form of the option %s", (actionReply, status, body) => {
    const client = createTestClient(scenarioWith({}, { actionReply }));
    const { id } = json(client.get("/v1/nodes")).data[0];
    expect(client.post(`/v1/nodes/${id}/reboot`)).toMatchObject({ status, body });
    expect(client.post(`/v1/nodes/${id}/disconnect`)).toMatchObject({ status, body });
  });
});

test("disconnect closes the node's sessions and returns their number", () => {
  const client = createTestClient(scenarioWith({ nodes: 10 }));
  const { id, active_sessions: sessions } = json(client.get("/v1/nodes")).data[0];
  expect(json(client.post(`/v1/nodes/${id}/disconnect`)).disconnected_sessions).toBe(sessions);
  expect(nodeNow(client, id)).toMatchObject({ status: "online", active_sessions: 0 });
  const statuses = [...actualSessions(client.service)]
    .filter(({ node_id }) => node_id === id)
    .map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set(["closed"]));
});

test("disconnected clients reconnect within a minute", () => {
  const client = createTestClient(scenarioWith({ nodes: 10, sessions: 1_000 }));
  for (const { id } of client.service.network.fleet.nodes) client.post(`/v1/nodes/${id}/disconnect`);
  const active = () => json(client.get("/v1/sessions/stats")).active_sessions;
  expect(active()).toBe(0);
  advance(client, MINUTE_MS);
  expect(active()).toBeGreaterThan(800);
});

describe("failures and maintenance", () => {
  test("an outage ends the node's sessions and reports", () => {
    const client = createTestClient(failingFleet({ flapping: 0 }));
    const node = findNodeOverTime(client, ({ failureMode }) => failureMode === "outage");
    expect([node.status, openSessionsOf(client, node.id)]).toEqual(["offline", 0]);
    advance(client, 3 * HOUR_MS);
    expect(nodeNow(client, node.id)).toMatchObject({ status: "offline", last_seen: node.last_seen });
  });

  test.each([
    ["hot", "cpu_usage"],
    ["leak", "memory_usage"],
    ["full", "disk_usage"],
  ] as const)("the failure %s raises %s long before the node goes offline", (failureMode, field) => {
    const client = createTestClient(failingFleet());
    const { id } = findNodeOverTime(client, (node) => node.failureMode === failureMode);
    advance(client, 45 * MINUTE_MS);
    const node = nodeNow(client, id);
    expect(node).toMatchObject({ status: "online", failureMode });
    expect(node[field]).toBeGreaterThan(0.9);
    advance(client, 8 * HOUR_MS);
    expect(nodeNow(client, id)).toMatchObject({ status: "offline", failureMode: "outage" });
  });

  test("sessions fail more often on failing nodes", () => {
    const client = createTestClient({ ...failingFleet({ faultEveryMs: 12 * HOUR_MS, flapping: 0 }), sessions: 2_000 });
    const counts = { healthy: [0, 0], failing: [0, 0] };
    for (let step = 0; step < 6; step += 1) {
      const nodes = new Map(advance(client, 5 * MINUTE_MS).map((node) => [node.id, node]));
      for (const { node_id, status } of actualSessions(client.service)) {
        const node = nodes.get(node_id)!;
        if (node.status !== "online" || /active|connecting/.test(status)) continue;
        counts[node.failureMode === "none" ? "healthy" : "failing"][status === "closed" ? 0 : 1]! += 1;
      }
    }
    const failedShare = ([closed, failed]: number[]) => failed! / (closed! + failed!);
    expect(failedShare(counts.healthy)).toBeLessThan(0.05);
    expect(failedShare(counts.failing)).toBeGreaterThan(0.15);
  });

  test("a transient failure ends within a quarter of an hour", () => {
    const client = createTestClient(failingFleet({ selfHealing: 1, flapping: 0 }));
    const { id } = findNodeOverTime(client, ({ failureMode }) => failureMode === "outage");
    const later = Array.from({ length: 16 }, () => advance(client, MINUTE_MS).find((node) => node.id === id)!);
    expect(later.map(({ status }) => status)).toContain("online");
  });

  test("an operator repairs a node in maintenance and reboots it", () => {
    const client = createTestClient(failingFleet({ incurable: 1, repairMs: 10 * MINUTE_MS }));
    const repaired = findNodeOverTime(client, ({ status }) => status === "maintenance");
    expect(repaired.failureMode).toBe("none");
    expect(advance(client, 10 * MINUTE_MS).find((node) => node.id === repaired.id)!.uptime_hours).toBe(0);
  });

  test("a flapping node goes offline and online every few minutes", () => {
    const client = createTestClient(failingFleet({ flapping: 1 }));
    const { id } = findNodeOverTime(client, ({ failureMode }) => failureMode === "flapping");
    const statuses = Array.from(
      { length: 30 },
      () => advance(client, MINUTE_MS).find((node) => node.id === id)!.status,
    );
    const changes = statuses.filter((status, index) => index > 0 && status !== statuses[index - 1]).length;
    expect(new Set(statuses)).toEqual(new Set(["online", "offline"]));
    expect(changes).toBeGreaterThan(5);
  });

  test("maintenance closes the sessions, ends, and installs the newest version", () => {
    const rates = { ...noFailureRates, maintenanceEveryMs: 3 * HOUR_MS };
    const client = createTestClient(scenarioWith({ rates }));
    const node = findNodeOverTime(client, ({ status }) => status === "maintenance");
    expect(openSessionsOf(client, node.id)).toBe(0);
    advance(client, 41 * MINUTE_MS);
    expect(nodeNow(client, node.id).version).toBe("2.14.3");
  });

  test("do not occur with infinite intervals", () => {
    const nodes = advance(createTestClient(scenarioWith({ sessions: 0 })), 40 * 24 * HOUR_MS);
    expect(new Set(nodes.map(({ status, failureMode }) => `${status} ${failureMode}`))).toEqual(
      new Set(["online none"]),
    );
  });
});

test("five minutes of the demo show nodes fail, recover and reboot", () => {
  const client = createTestClient({ ...demoScenario, sessions: 0 });
  const changes = new Set<string>();
  let before = advance(client, 0);
  for (let step = 0; step < 30; step += 1) {
    const after = advance(client, 10_000);
    after.forEach(({ status }, index) => {
      changes.add(`${before[index]!.status} to ${status}`);
    });
    before = after;
  }
  expect([...changes]).toEqual(
    expect.arrayContaining(["online to offline", "offline to online", "online to rebooting", "rebooting to online"]),
  );
  expect(before.filter(({ status }) => status === "online").length / before.length).toBeGreaterThan(0.9);
});

test("names and addresses are unique, and locations and ages are plausible", () => {
  const nodes = advance(createTestClient(scenarioWith({ nodes: 3_000, sessions: 0 })), 0);
  for (const field of ["id", "name", "ip_address"] as const) {
    expect(new Set(nodes.map((node) => node[field])).size).toBe(nodes.length);
  }
  expect(nodes.filter(({ name }) => name.startsWith("vip-")).length).toBeGreaterThan(5);
  const regions = new Set(nodes.map(({ region }) => region));
  expect([...regions]).toEqual(expect.arrayContaining(["eu-west", "us-east", "ap-south"]));
  for (const { created_at, uptime_hours } of nodes) {
    expect(uptime_hours! * HOUR_MS).toBeLessThan(START - Date.parse(created_at));
  }
});

test("the number of sessions is proportional to the size of a node", () => {
  const client = createTestClient(scenarioWith({ nodes: 100, sessions: 10_000 }));
  advance(client, 30 * MINUTE_MS);
  const { fleet, traffic } = client.service.network;
  const meanOf = (size: number) => {
    const nodes = fleet.nodes.filter((node) => node.size === size);
    return nodes.reduce((sum, { index }) => sum + traffic.population.nodes[index]!.active, 0) / nodes.length;
  };
  expect(meanOf(4) / meanOf(1)).toBeGreaterThan(3.2);
  expect(meanOf(4) / meanOf(1)).toBeLessThan(4.8);
});
