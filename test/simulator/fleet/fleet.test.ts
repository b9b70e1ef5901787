import { describe, expect, test } from "vitest";
import type { FleetRates } from "../../../src/model/scenario.ts";
import { demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { type ActualNode, actualNodes, actualSessions } from "../../../src/simulator/inspection.ts";
import { createTestClient, json, noFailureRates, START, scenarioWith, type TestClient } from "../api-caller.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const NEVER = Number.POSITIVE_INFINITY;

/** A fleet in which every node falls ill within minutes, and stays so unless the change says otherwise. */
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

const liveSessionsOn = (client: TestClient, id: string): number =>
  [...actualSessions(client.service)].filter(
    ({ node_id, status }) => node_id === id && /active|connecting/.test(status),
  ).length;

/** The first node that is as asked, found by letting time pass. */
function findNodeOverTime(client: TestClient, wanted: (node: ActualNode) => boolean): ActualNode {
  for (let minute = 0; minute < 600; minute += 1) {
    const found = advance(client, MINUTE_MS).find(wanted);
    if (found !== undefined) return found;
  }
  throw new Error("no node was ever as wanted");
}

describe("quarantine", () => {
  test("cuts the node's sessions and counts them, and the node comes back when it elapses", () => {
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
    expect([nodeNow(client, node.id).status, liveSessionsOn(client, node.id)]).toEqual(["quarantined", 0]);
    advance(client, 1);
    expect(nodeNow(client, node.id).status).toBe("online");
    advance(client, 30 * MINUTE_MS);
    expect(liveSessionsOn(client, node.id)).toBeGreaterThan(0);
  });

  test("is replaced by a second one, outlasts a reboot, and leaves a node that ails ailing", () => {
    const client = createTestClient(failingFleet());
    const { id } = findNodeOverTime(
      client,
      ({ status, failureMode: ailment }) => status === "offline" && ailment === "outage",
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
  test("ends the sessions, takes its time, and brings uptime down to 0", () => {
    const client = createTestClient(scenarioWith());
    const before = json(client.get("/v1/nodes")).data.find((one: { uptime_hours: number }) => one.uptime_hours > 0);
    expect(json(client.post(`/v1/nodes/${before.id}/reboot`, { force: false }))).toMatchObject({ success: true });
    const during = advance(client, 2 * MINUTE_MS - 1).find(({ id }) => id === before.id)!;
    expect([during.status, liveSessionsOn(client, before.id)]).toEqual(["rebooting", 0]);
    expect(client.post(`/v1/nodes/${before.id}/reboot`).status).toBe(409);
    const done = advance(client, 1).find(({ id }) => id === before.id)!;
    expect([done.status, done.uptime_hours, done.last_seen]).toEqual(["online", 0, new Date(client.now).toISOString()]);
    const reported = HOUR_MS + 15_000;
    expect(advance(client, reported).find(({ id }) => id === before.id)!.uptime_hours).toBe(1);
  });

  test("heals what a reboot heals; what hangs too deep needs a forced one, and a graceful one changes nothing", () => {
    const client = createTestClient(failingFleet({ flapping: 0 }));
    const plain = findNodeOverTime(client, ({ status, remedy: cure }) => status === "offline" && cure === "reboot");
    client.post(`/v1/nodes/${plain.id}/reboot`, { force: false });
    advance(client, 2 * MINUTE_MS);
    expect(nodeNow(client, plain.id)).toMatchObject({ status: "online", failureMode: "none", uptime_hours: 0 });
    const deep = findNodeOverTime(
      client,
      ({ status, remedy: cure }) => status === "offline" && cure === "forced_reboot",
    );
    client.post(`/v1/nodes/${deep.id}/reboot`, { force: false });
    expect(nodeNow(client, deep.id)).toMatchObject({ status: "offline", last_seen: deep.last_seen });
    client.post(`/v1/nodes/${deep.id}/reboot`, { force: true });
    advance(client, 2 * MINUTE_MS);
    expect(nodeNow(client, deep.id)).toMatchObject({ status: "online", failureMode: "none", uptime_hours: 0 });
  });

  test("of a node that responds takes place either way, and heals what hangs too deep only if forced", () => {
    const client = createTestClient(failingFleet());
    const { id } = findNodeOverTime(client, ({ status, failureMode: ailment, remedy: cure }) => {
      return status === "online" && ailment === "leak" && cure === "forced_reboot";
    });
    client.post(`/v1/nodes/${id}/reboot`, { force: false });
    advance(client, 2 * MINUTE_MS);
    expect(nodeNow(client, id)).toMatchObject({ status: "online", failureMode: "leak", uptime_hours: 0 });
    client.post(`/v1/nodes/${id}/reboot`, { force: true });
    advance(client, 2 * MINUTE_MS);
    expect(nodeNow(client, id)).toMatchObject({ status: "online", failureMode: "none", uptime_hours: 0 });
  });

  test("of a node that no reboot heals leaves it offline, with the uptime and the sight it last had", () => {
    const client = createTestClient(failingFleet({ incurable: 1, flapping: 0 }));
    const broken = findNodeOverTime(client, ({ status, uptime_hours }) => status === "offline" && uptime_hours > 0);
    client.post(`/v1/nodes/${broken.id}/reboot`, { force: true });
    advance(client, 2 * MINUTE_MS);
    const { status, uptime_hours, last_seen } = broken;
    expect(nodeNow(client, broken.id)).toMatchObject({ status, uptime_hours, last_seen });
  });

  test.each([
    ["empty_object", 200, "{}"],
    ["no_content", 204, ""],
  ] as const)("and disconnect answer as the option %s says", (actionReply, status, body) => {
    const client = createTestClient(scenarioWith({}, { actionReply }));
    const { id } = json(client.get("/v1/nodes")).data[0];
    expect(client.post(`/v1/nodes/${id}/reboot`)).toMatchObject({ status, body });
    expect(client.post(`/v1/nodes/${id}/disconnect`)).toMatchObject({ status, body });
  });
});

test("disconnect ends the node's sessions in order, and says how many there were", () => {
  const client = createTestClient(scenarioWith({ nodes: 10 }));
  const { id, active_sessions: had } = json(client.get("/v1/nodes")).data[0];
  expect(json(client.post(`/v1/nodes/${id}/disconnect`)).disconnected_sessions).toBe(had);
  expect(nodeNow(client, id)).toMatchObject({ status: "online", active_sessions: 0 });
  const statuses = [...actualSessions(client.service)]
    .filter(({ node_id }) => node_id === id)
    .map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set(["closed"]));
});

test("clients that were disconnected come back within a minute", () => {
  const client = createTestClient(scenarioWith({ nodes: 10, sessions: 1_000 }));
  for (const { id } of client.service.world.fleet.nodes) client.post(`/v1/nodes/${id}/disconnect`);
  const active = () => json(client.get("/v1/sessions/stats")).active_sessions;
  expect(active()).toBe(0);
  advance(client, MINUTE_MS);
  expect(active()).toBeGreaterThan(800);
});

describe("what befalls nodes", () => {
  test("an outage silences a node: its sessions are lost and its last report stands", () => {
    const client = createTestClient(failingFleet({ flapping: 0 }));
    const node = findNodeOverTime(client, ({ failureMode: ailment }) => ailment === "outage");
    expect([node.status, liveSessionsOn(client, node.id)]).toEqual(["offline", 0]);
    advance(client, 3 * HOUR_MS);
    expect(nodeNow(client, node.id)).toMatchObject({ status: "offline", last_seen: node.last_seen });
  });

  test.each([
    ["hot", "cpu_usage"],
    ["leak", "memory_usage"],
    ["full", "disk_usage"],
  ] as const)("a node that is %s shows it in %s alone, long before it goes", (ailment, field) => {
    const client = createTestClient(failingFleet());
    const { id } = findNodeOverTime(client, (node) => node.failureMode === ailment);
    advance(client, 45 * MINUTE_MS);
    const node = nodeNow(client, id);
    expect(node).toMatchObject({ status: "online", failureMode: ailment });
    expect(node[field]).toBeGreaterThan(0.9);
    advance(client, 8 * HOUR_MS);
    expect(nodeNow(client, id)).toMatchObject({ status: "offline", failureMode: "outage" });
  });

  test("sessions fail far more often on ailing nodes", () => {
    const client = createTestClient({ ...failingFleet({ faultEveryMs: 12 * HOUR_MS, flapping: 0 }), sessions: 2_000 });
    const failed = { well: [0, 0], ill: [0, 0] };
    for (let step = 0; step < 6; step += 1) {
      const nodes = new Map(advance(client, 5 * MINUTE_MS).map((node) => [node.id, node]));
      for (const { node_id, status } of actualSessions(client.service)) {
        const node = nodes.get(node_id)!;
        if (node.status !== "online" || /active|connecting/.test(status)) continue;
        failed[node.failureMode === "none" ? "well" : "ill"][status === "closed" ? 0 : 1]! += 1;
      }
    }
    const share = ([fine, bad]: number[]) => bad! / (fine! + bad!);
    expect(share(failed.well)).toBeLessThan(0.05);
    expect(share(failed.ill)).toBeGreaterThan(0.15);
  });

  test("what passes by itself passes within a quarter of an hour, and a person mends the rest", () => {
    const passing = createTestClient(failingFleet({ selfHealing: 1, flapping: 0 }));
    const { id } = findNodeOverTime(passing, ({ failureMode: ailment }) => ailment === "outage");
    const later = Array.from({ length: 16 }, () => advance(passing, MINUTE_MS).find((node) => node.id === id)!);
    expect(later.map(({ status }) => status)).toContain("online");
    const mended = createTestClient(failingFleet({ incurable: 1, repairMs: 10 * MINUTE_MS }));
    const repaired = findNodeOverTime(mended, ({ status }) => status === "maintenance");
    expect(repaired.failureMode).toBe("none");
    expect(advance(mended, 10 * MINUTE_MS).find((node) => node.id === repaired.id)!.uptime_hours).toBe(0);
  });

  test("a flapping node comes and goes every few minutes", () => {
    const client = createTestClient(failingFleet({ flapping: 1 }));
    const { id } = findNodeOverTime(client, ({ failureMode: ailment }) => ailment === "flapping");
    const seen = Array.from({ length: 30 }, () => advance(client, MINUTE_MS).find((node) => node.id === id)!.status);
    const turns = seen.filter((status, index) => index > 0 && status !== seen[index - 1]).length;
    expect(new Set(seen)).toEqual(new Set(["online", "offline"]));
    expect(turns).toBeGreaterThan(5);
  });

  test("maintenance closes sessions, ends by itself, and leaves the newest version", () => {
    const rates = { ...noFailureRates, maintenanceEveryMs: 3 * HOUR_MS };
    const client = createTestClient(scenarioWith({ rates }));
    const node = findNodeOverTime(client, ({ status }) => status === "maintenance");
    expect(liveSessionsOn(client, node.id)).toBe(0);
    advance(client, 41 * MINUTE_MS);
    expect(nodeNow(client, node.id).version).toBe("2.14.3");
  });

  test("nothing, where the rates say never", () => {
    const nodes = advance(createTestClient(scenarioWith({ sessions: 0 })), 40 * 24 * HOUR_MS);
    expect(new Set(nodes.map(({ status, failureMode: ailment }) => `${status} ${ailment}`))).toEqual(
      new Set(["online none"]),
    );
  });
});

test("whoever watches the demo for five minutes sees nodes fail, recover and reboot", () => {
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

test("names, places and addresses are plausible, and no two nodes share a name or an address", () => {
  const nodes = advance(createTestClient(scenarioWith({ nodes: 3_000, sessions: 0 })), 0);
  for (const field of ["id", "name", "ip_address"] as const) {
    expect(new Set(nodes.map((node) => node[field])).size).toBe(nodes.length);
  }
  expect(nodes.filter(({ name }) => name.startsWith("vip-")).length).toBeGreaterThan(5);
  const regions = new Set(nodes.map(({ region }) => region));
  expect([...regions]).toEqual(expect.arrayContaining(["eu-west", "us-east", "ap-south"]));
  for (const { created_at, uptime_hours } of nodes) {
    expect(uptime_hours * HOUR_MS).toBeLessThan(START - Date.parse(created_at));
  }
});

test("larger nodes carry more sessions, in proportion", () => {
  const client = createTestClient(scenarioWith({ nodes: 100, sessions: 10_000 }));
  advance(client, 30 * MINUTE_MS);
  const { fleet, traffic } = client.service.world;
  const meanOf = (size: number) => {
    const alike = fleet.nodes.filter((node) => node.size === size);
    return alike.reduce((sum, { index }) => sum + traffic.population.nodes[index]!.active, 0) / alike.length;
  };
  expect(meanOf(4) / meanOf(1)).toBeGreaterThan(3.2);
  expect(meanOf(4) / meanOf(1)).toBeLessThan(4.8);
});
